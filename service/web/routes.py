"""Every page of the dashboard, on one router; each form is checked for where it came from."""

from fastapi import APIRouter, Depends
from starlette.routing import Route

from service.auth.hosts import check_host
from service.web import accounts, freezes, inbox, items, live, runs, searches, sign_ins
from service.web import history as decided
from service.web.form_posts import check_origin

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_host), Depends(check_origin)])
PAGES = tuple(room.router for room in (sign_ins, inbox, items, decided, runs, searches, freezes, accounts, live))
for _pages in PAGES:
    for _route in _pages.routes:
        if isinstance(_route, Route) and _route.methods == {"GET"} and _pages is not live.router:
            _route.methods.add("HEAD")  # who looks whether a page is there reads none (RFC 9110, section 9.1)
    router.include_router(_pages)
