"""All pages: the router of those of the core and of each feature, and what features add to those of the core."""

from fastapi import APIRouter, Depends
from starlette.routing import Route

from service.core.auth.hosts import check_host
from service.edge.web import handling, inbox, items, live, runs, sign_ins
from service.edge.web.additions import Addition
from service.edge.web.languages import speak_language
from service.edge.web.sessions import check_origin
from service.features import alike, forwards, notes, phone, previews, reversals, saved_views, sdk
from service.features.archive import api as archive
from service.features.break_glass import pages as break_glass
from service.features.codes import pages as codes
from service.features.control import api as control
from service.features.discussions import api as discussions
from service.features.discussions import discussing
from service.features.forecast import api as forecast
from service.features.history import pages as history
from service.features.insights import api as insights
from service.features.operate import pages as operate
from service.features.operate import slack_install, welcome
from service.features.outsiders import pages as outsiders
from service.features.passkeys import pages as passkeys
from service.features.people import account_pages, admin_pages, group_pages
from service.features.permissions import pages as permissions
from service.features.rulebook import api as rulebook
from service.features.sign_in import pages as providers
from service.features.webhooks import api as webhooks
from service.features.whatif import pages as whatif
from service.features.whatif import trial_pages

ADDITIONS = (
    Addition(sign_in=passkeys.add_to_sign_in, item=passkeys.add_to_item, decision=passkeys.SIGNING),
    Addition(inbox=saved_views.add_to_inbox, section=control.add_to_inbox),
    Addition(form=handling.QUESTION, item=insights.add_to_item),
    Addition(
        item=discussing.add_to_item,
        run=discussing.add_to_run,
        stream=discussions.Others,
        form=discussions.COMMENT,
    ),
    Addition(run=notes.add_to_run),
    Addition(item=forwards.add_to_item, form=forwards.FORM),
    Addition(item=outsiders.add_to_item, form=outsiders.FORM),
    Addition(run=reversals.add_to_run, section=reversals.add_to_inbox),
    Addition(run=forecast.add_to_run),
    Addition(item=permissions.add_to_item, decision=permissions.GRANTING, section=permissions.add_to_inbox),
)
_CHECKS = (Depends(speak_language), Depends(check_host), Depends(check_origin))
router = APIRouter(include_in_schema=False, dependencies=_CHECKS)
_MODULES = (
    sign_ins,
    passkeys,
    codes,
    providers,
    inbox,
    saved_views,
    alike,
    items,
    handling,
    discussions,
    history,
    insights,
    runs,
    notes,
    previews,
    outsiders,
    reversals,
    operate,
    control,
    break_glass,
    welcome,
    account_pages,
    admin_pages,
    group_pages,
    rulebook,
    trial_pages,
    whatif,
    permissions,
    phone,
    slack_install,
    webhooks,
    sdk,
    live,
)
PAGES = (*(module.router for module in _MODULES), archive.pages)
for _pages in PAGES:
    for _route in _pages.routes:
        if isinstance(_route, Route) and _route.methods == {"GET"} and _pages is not live.router:
            _route.methods.add("HEAD")  # required by RFC 9110, section 9.1
    router.include_router(_pages)
