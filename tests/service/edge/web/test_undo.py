"""Approved, and undone on the same page; nothing has run before."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of

pytestmark = pytest.mark.browser

MOST_PX = 96


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_approval_is_undone_with_one_press(site: Site, open_as: Callable[..., Page], viewport: ViewportSize) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"undo": "60s"})))
    page = open_as(place_of(record), viewport=viewport)
    read_to_the_end(page)
    page.get_by_role("button", name="Approve EUR 250.00").click()
    expect(page.get_by_text("Approved. Nothing has run yet.")).to_be_visible()
    assert page.locator(".decide").evaluate("bar => bar.offsetHeight") <= MOST_PX
    countdown = page.get_by_role("button", name="Undo", exact=True).locator("[data-until]")
    first = countdown.inner_text()
    expect(countdown).not_to_have_text(first)
    expect(countdown).to_have_text(re.compile(r"^\d+ s$|^1 min$"))
    other = open_as(place_of(record), "carla", viewport=viewport)
    expect(other.get_by_text("anna has decided this. It takes effect in a moment.")).to_be_visible()
    expect(other.get_by_role("button", name="Undo")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
    expect(other.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()

    async def read(wiring: Wiring) -> tuple[str, bool]:
        found = (await wiring.desk.suspensions.read(record.id)).record
        return found.status, found.items[0].voided[0].retracted

    assert site.act(read) == ("pending", True)


def test_page_follows_when_the_decision_takes_effect(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"undo": "1s"})))
    page = open_as(place_of(record))
    read_to_the_end(page)
    page.get_by_role("button", name="Approve EUR 250.00").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()

    async def take_effect(wiring: Wiring) -> None:
        while not (await wiring.desk.tick(record.id)).record.receipt.decided_at_ms:
            pass

    site.act(take_effect)
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


def test_item_beside_the_inbox_stays_while_it_can_be_undone(site: Site, open_as: Callable[..., Page]) -> None:
    for _ in range(2):
        site.act(lambda wiring: asked(wiring, make_ask(terms={"undo": "60s"})))
    page = open_as("/")
    page.locator("#rows h3 a").first.click()
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="Approve EUR 250.00").click()
    expect(frame.get_by_role("button", name="Undo")).to_be_visible()
