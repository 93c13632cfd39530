"""Every page of the dashboard, on one router; each form is checked for where it came from."""

from fastapi import APIRouter, Depends

from service.web import decided, freezes, inbox, items, live, runs, searches, sign_ins
from service.web.posts import check_origin

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_origin)])
PAGES = tuple(room.router for room in (sign_ins, inbox, items, decided, runs, searches, freezes, live))
for _pages in PAGES:
    router.include_router(_pages)
