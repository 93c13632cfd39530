"""Pages: every page and form with every kind of credential, by the table of roles. A new page needs a row."""

import pytest
from httpx import ASGITransport, AsyncClient, Response
from starlette.routing import Route

from service.core.auth.doors import OPEN_PAGES, PAGES
from service.core.auth.roles import Permission
from service.edge.web.sessions import cookie_name
from service.features.pages import PAGES as ROUTERS
from tests.builders import PASSWORD
from tests.service.edge.credentials import HELD, WHO, add_credential, rights_of
from tests.service.edge.web.sites import OWN
from tests.service.worlds import World

ROUTES = [
    f"{method} {route.path}"
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, Route)
    for method in sorted((route.methods or set()) - {"HEAD"})
]
UNKNOWN = {
    "suspension_id": "sus_" + "0" * 32,
    "run_id": "run_" + "0" * 32,
    "item_id": "i1",
    "name": "nobody",
    "seq": "1",
}
FIELDS = {"POST /me/password": {"current": PASSWORD, "password": "a much better one", "again": "a much better one"}}
ENDLESS = "GET /live"
EVERYBODY = ("GET /sign-in", "GET /sign-in/{provider}", "GET /docs")
"""Pages that somebody who has not signed in may open, too."""

CHECKED_FURTHER: dict[str, Permission] = {"POST /groups/{name}": "manage_groups"}
"""Forms that somebody else may send, too: the editors of a group, which has none here."""


def test_each_page_has_a_row() -> None:
    assert {*ROUTES} == {*PAGES} | OPEN_PAGES


async def request(world: World, page: str, who: str) -> Response:
    """Open a page, or send a form that holds nothing but the token of its session."""
    method, path = page.split()
    for name in ("freeze_id:path", "attachment_id", "endpoint_id", "sender_id", "grant_id", "key_id", "replay_id"):
        path = path.replace(f"{{{name}}}", "none")
    path = path.replace("{version}", "none").replace("{rule_id}", "none").replace("{like}", "none-i1")
    path = path.replace("{wheel}", "none").replace("{provider}", "none")
    cookies = {cookie_name(world.wiring.settings): world.tokens[who]} if who != "nobody" else {}
    fields = {"csrf": "", **FIELDS.get(page, {})}
    if who in HELD:
        principal = await world.wiring.credentials.identify(world.tokens[who])
        fields |= {"csrf": "0" * 64 + principal.csrf}
    transport = ASGITransport(world.app)
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", cookies=cookies) as client:
        place = path.format(**UNKNOWN)
        return await (client.get(place) if method == "GET" else client.post(place, data=fields, headers=OWN))


@pytest.mark.parametrize("page", [page for page in PAGES if page != ENDLESS])
async def test_page_opens_for_those_whose_roles_have_its_permission(world: World, page: str) -> None:
    await world.wiring.groups.create("nobody", (), (), "root")
    for who in HELD:
        await add_credential(world, who)
        answer = await request(world, page, who)
        may = rights_of(who).has(PAGES[page]) and rights_of(who).has(CHECKED_FURTHER.get(page, "account"))
        assert (answer.status_code == 403) == (not may), (who, answer.text)
        assert answer.status_code < 500
        assert not answer.headers.get("location", "").startswith("/sign-in") or page == "POST /sign-out"


@pytest.mark.parametrize("who", [who for who in WHO if who not in HELD])
async def test_no_page_opens_without_a_session(world: World, who: str) -> None:
    await add_credential(world, who)
    for page in PAGES:
        answer = await request(world, page, who)
        if page in EVERYBODY:
            assert answer.status_code in (200, 404)
        else:
            place = answer.headers.get("location", "").split("?")[0]
            assert answer.status_code == 401 or (answer.status_code, place) == (303, "/sign-in"), page
