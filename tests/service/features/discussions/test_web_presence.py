"""Who has an item open: on its row and on its page, live, and gone when they leave."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from service.core.settings import Settings
from service.features.discussions.store import Presence
from tests.service.edge.web.sites import OWN, Site, visit
from tests.service.edge.web.stories import asked, place_of
from tests.service.edge.web.test_live import follow, stream


async def test_stream_says_who_has_an_item_open(settings: Settings) -> None:
    async with stream(settings) as (lines, _), visit(settings, "ben") as ben:
        await follow(lines, "data: 0")
        record = await asked(ben.wiring)
        before = (await ben.wiring.desk.suspensions.read(record.id)).record
        trail = await ben.wiring.runs.trail(record.run.id)
        await ben.send(f"{place_of(record)}/here", 204)
        await follow(lines, f'data: {{"{record.id}-i1": ["ben"]}}')
        await ben.send(f"{place_of(record)}/here", 204)  # no event: nothing changed
        await ben.send(f"{place_of(record)}/here", 204, left="1")
        assert "event: here" in await follow(lines, "data: {}")
        assert (await ben.wiring.desk.suspensions.read(record.id)).record == before
        assert await ben.wiring.runs.trail(record.run.id) == trail


async def test_presence_needs_the_form_of_the_session_and_an_item(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        refused = await anna.client.post(f"{place_of(record)}/here", data={"csrf": "x"}, headers=OWN)
        assert refused.status_code == 403
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert (await anna.client.post(f"{place_of(record)}/here", headers=foreign)).status_code == 403
        await anna.send(f"{place_of(record)[:-1]}9/here", 404)
        await anna.send("/items/sus_none/i1/here", 404)
        assert (await anna.wiring.part(Presence).read(0)).people == {}


def test_others_see_on_row_and_item_who_looks(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    inbox = open_as("/")
    row = inbox.locator(f"li#{record.id}-i1")
    ben = open_as(place_of(record), name="ben")
    expect(row.locator(".here")).to_have_text("ben looks")
    expect(ben.locator(".here")).to_have_text("")
    row.get_by_role("link").click()
    expect(inbox.locator(".here")).to_have_text("ben looks")
    expect(ben.locator(".here")).to_have_text("anna looks")
    ben.goto("/")
    expect(inbox.locator(".here")).to_have_text("")
    expect(ben.locator(f"li#{record.id}-i1 .here")).to_have_text("anna looks")
