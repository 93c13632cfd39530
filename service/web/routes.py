"""The router of all pages, with the origin check of forms."""

from fastapi import APIRouter, Depends
from starlette.routing import Route

from service.auth.hosts import check_host
from service.web import inbox, items, live, runs, sign_ins, webhooks
from service.web.alike import pages as alike
from service.web.channels import slack
from service.web.discussions import attachments, comments, presence
from service.web.form_posts import check_origin
from service.web.history import insights
from service.web.history import pages as history
from service.web.languages import speak_language
from service.web.operations import channels, drills, operate, second_look, welcome
from service.web.people import accounts, contacts, directory, duty, groups, inquiries, keys, who
from service.web.phone import app_files, notifications
from service.web.rulebook import cases, drafts, grants, replays, rules, shadows, trials, versions
from service.web.waiting import saved_views

_CHECKS = (Depends(speak_language), Depends(check_host), Depends(check_origin))
router = APIRouter(include_in_schema=False, dependencies=_CHECKS)
_CHANNELS = (channels, app_files, notifications, slack, webhooks)
_MODULES = (
    sign_ins,
    inbox,
    saved_views,
    alike,
    items,
    inquiries,
    comments,
    attachments,
    presence,
    history,
    insights,
    runs,
    operate,
    drills,
    second_look,
    welcome,
    accounts,
    directory,
    keys,
    contacts,
    duty,
    groups,
    who,
    rules,
    trials,
    cases,
    drafts,
    replays,
    versions,
    shadows,
    grants,
    *_CHANNELS,
    live,
)
PAGES = tuple(module.router for module in _MODULES)
for _pages in PAGES:
    for _route in _pages.routes:
        if isinstance(_route, Route) and _route.methods == {"GET"} and _pages is not live.router:
            _route.methods.add("HEAD")  # required by RFC 9110, section 9.1
    router.include_router(_pages)
