"""A reviewer forwards an item with the keyboard, and the recipient decides it."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser import DESKTOP
from tests.builders import make_person
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, place_of

Open = Callable[..., Page]


def test_forward_by_keyboard_reaches_the_recipient_who_decides(site: Site, open_as: Open) -> None:
    site.act(lambda wiring: make_person(wiring, "ben"))
    record = site.act(asked)
    page = open_as(place_of(record), viewport=DESKTOP)
    form = page.locator("#forward")
    form.locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Forward to")).to_be_focused()
    page.keyboard.type("ben")
    page.keyboard.press("Tab")
    page.keyboard.type("You know this order.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#standing")).to_contain_text("You forwarded it to ben")
    expect(page.locator("#standing")).to_contain_text("The others who may decide still can.")
    inbox = open_as("/", name="ben", viewport=DESKTOP)
    expect(inbox.get_by_text("forwarded to you by anna: You know this order.")).to_be_visible()
    own = open_as(place_of(record), name="ben", viewport=DESKTOP)
    expect(own.locator("#standing")).to_contain_text("Forwarded to you by anna")
    read_to_the_end(own)
    own.get_by_role("button", name="Approve").first.click()
    expect(own.get_by_role("heading", name="ben approved this")).to_be_visible()
