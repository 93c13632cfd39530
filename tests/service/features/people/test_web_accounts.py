"""The page of one's own sign-in: a new password, and the sessions that are open."""

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, PASSWORD, Visit, add_people, visit

NEW = "a much better battery"


async def begin(guest: Visit, agent: str = "a browser") -> str:
    """Sign carla in; return the secret of her forms."""
    form = {"name": "carla", "password": PASSWORD}
    answer = await guest.client.post("/sign-in", data=form, headers={**OWN, "User-Agent": agent})
    assert answer.status_code == 303, answer.text
    page = await guest.read("/me")
    return page.partition('name="csrf" value="')[2].partition('"')[0]


async def test_account_page_changes_the_password(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        csrf = await begin(guest)
        form = {"csrf": csrf, "current": PASSWORD, "password": NEW, "again": NEW}
        refused = await guest.send("/me/password", 422, **{**form, "again": "typed otherwise"})
        assert "The two new passwords differ. Enter them again" in refused
        assert await guest.send("/me/password", 303, **form) == "/me?done=password"
        assert "The password is changed" in await guest.read("/me?done=password")
        guest.client.cookies.clear()
        old = await guest.client.post("/sign-in", data={"name": "carla", "password": PASSWORD}, headers=OWN)
        new = await guest.client.post("/sign-in", data={"name": "carla", "password": NEW}, headers=OWN)
        assert (old.status_code, new.status_code) == (401, 303)


@pytest.mark.parametrize(
    ("current", "again", "status", "said"),
    [("a wrong password", NEW, 403, "not right"), (PASSWORD, "typed otherwise", 422, "The two new passwords differ")],
)
async def test_account_page_shows_a_refused_password(
    settings: Settings, current: str, again: str, status: int, said: str
) -> None:
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        csrf = await begin(guest)
        form = {"csrf": csrf, "current": current, "password": NEW, "again": again}
        page = await guest.send("/me/password", status, **form)
        assert said in page
        assert NEW not in page


async def test_account_page_lists_and_ends_sessions(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        await begin(guest, "an old phone")
        phone = guest.client.cookies["sayso_session_8321"]
        guest.client.cookies.clear()
        csrf = await begin(guest, "a laptop")
        page = await guest.read("/me")
        assert "an old phone" in page
        which = page.partition('name="which" value="')[2].partition('"')[0]
        assert await guest.send("/me/sessions", csrf=csrf, which=which) == "/me?done=sessions"
        assert "an old phone" not in await guest.read("/me")
        guest.wiring.credentials.forget(phone)
        guest.client.cookies.clear()
        gone = await guest.client.get("/", headers={"Cookie": f"sayso_session_8321={phone}"})
        assert gone.status_code == 303


async def test_account_page_ends_all_other_sessions_and_rejects_forgeries(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        await begin(guest, "an old phone")
        guest.client.cookies.clear()
        csrf = await begin(guest, "a laptop")
        await guest.send("/me/sessions", 403, csrf=CSRF, which="others")
        assert "an old phone" in await guest.read("/me")
        await guest.send("/me/sessions", csrf=csrf, which="others")
        assert "an old phone" not in await guest.read("/me")
