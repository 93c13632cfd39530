"""Keys of the pages, pressed in a real browser as the help sheet lists them."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import ask_value, asked, decide, make_ask, place_of

SHELL = ToolDefinition(name="shell")
LONG = "\n".join(f"echo {place}" for place in range(400))
ARMED = re.compile("Approve.*[?] Enter sends · Esc goes back")

Open = Callable[..., Page]
TABLET: ViewportSize = {"width": 1024, "height": 768}  # a list and an item are two pages; see test_split.py
both_screens = pytest.mark.parametrize("viewport", [PHONE, TABLET], ids=["phone", "tablet"])


async def ask_two(wiring: Wiring) -> list[SuspensionRecord]:
    return [await asked(wiring, make_ask(terms={"timeout_s": 900 + place})) for place in range(2)]


async def ask_long(wiring: Wiring) -> SuspensionRecord:
    return await asked(wiring, make_ask(SHELL, {"command": LONG}))


def read_to_the_end(page: Page) -> None:
    while page.locator(".decide .wide[aria-disabled]").count():
        press(page, "]")


def arm(page: Page) -> None:
    """Have every text shown, then press `a`."""
    read_to_the_end(page)
    press(page, "a")
    expect(page.locator(".armed")).to_have_text(ARMED)


def press(page: Page, *keys: str) -> None:
    """Press each key once the scripts ran and the bar takes presses."""
    page.wait_for_load_state()
    for key in keys:
        expect(page.locator(".decide[aria-disabled]")).to_have_count(0)
        page.keyboard.press(key)


def row_link(page: Page, record: SuspensionRecord) -> str:
    return f"#{record.id}-i1 a"


@both_screens
def test_item_is_approved_from_the_inbox_by_keys(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    first, second = site.act(ask_two)
    page = open_as("/", viewport=viewport)
    press(page, "j")
    expect(page.locator(row_link(page, first))).to_be_focused()
    press(page, "j", "j", "k", "j")
    expect(page.locator(row_link(page, second))).to_be_focused()
    press(page, "o")
    expect(page.locator(".approval .wide")).to_be_visible()
    arm(page)
    press(page, "Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    press(page, "n")
    expect(page).to_have_url(site.url + place_of(first))


def test_enter_opens_the_focused_row(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as("/", viewport=TABLET)
    press(page, "j", "Enter")
    expect(page).to_have_url(site.url + place_of(record))


@both_screens
def test_approve_by_keys_waits_until_everything_was_shown(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(ask_long)), viewport=viewport)
    press(page, "a")
    expect(page.locator(".what :focus")).to_have_count(1)
    expect(page.locator(".armed")).to_have_count(0)
    press(page, "Enter")
    expect(page.locator(".approval .wide")).to_have_attribute("aria-disabled", "true")
    arm(page)
    press(page, "Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


@pytest.mark.parametrize("key", ["Escape", "Tab", "x"])
def test_another_key_disarms(site: Site, open_as: Open, key: str) -> None:
    page = open_as(place_of(site.act(asked)))
    arm(page)
    press(page, key)
    expect(page.locator(".armed")).to_have_count(0)
    press(page, "Enter")
    expect(page.locator(".approval .wide")).to_be_visible()


def test_armed_approval_is_forgotten_after_five_seconds(site: Site, open_as: Open) -> None:
    page = open_as("/history")
    page.clock.install()
    page.goto(place_of(site.act(asked)))
    read_to_the_end(page)
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)  # from here the time goes on by steps alone
    arm(page)
    page.clock.run_for(4900)
    expect(page.locator(".armed")).to_be_visible()
    page.clock.run_for(200)
    expect(page.locator(".armed")).to_have_count(0)


def test_change_of_the_item_disarms(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"quorum": {"approve": 2}})))
    page = open_as(place_of(record))
    arm(page)
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.locator(".decide").get_by_text("ben denied this")).to_be_visible()
    expect(page.locator(".armed")).to_have_count(0)


def test_refresh_of_the_same_item_stays_armed(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(asked)))
    arm(page)
    with page.expect_response(lambda response: "/items/" in response.url):
        page.evaluate("document.dispatchEvent(new Event('refresh'))")
    expect(page.locator(".armed")).to_be_visible()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_held_enter_does_not_send(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(asked)))
    arm(page)
    page.evaluate("dispatchEvent.call(document, new KeyboardEvent('keydown', { key: 'Enter', repeat: true }))")
    expect(page.locator(".armed")).to_have_count(1)


def test_denial_with_a_reason_by_keys(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(asked)))
    press(page, "d")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("a dog ate it?")
    expect(page.locator(".armed, dialog")).to_have_count(0)
    press(page, "Escape")
    expect(page.get_by_label("Reason")).to_be_hidden()
    press(page, "d", "Control+Enter")
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
    expect(page.locator("#standing").get_by_text("a dog ate it?")).to_be_visible()


def test_edit_by_keys(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(asked)))
    press(page, "e")
    expect(page.locator("#edit :focus")).to_have_count(1)
    press(page, "Escape", "Escape")
    expect(page.locator("#edit")).to_have_count(0)
    press(page, "e")
    page.get_by_label("amount").fill("120")
    press(page, "Control+Enter")
    expect(page.get_by_role("button", name="Approve with 1 change")).to_be_enabled()
    press(page, "a")
    expect(page.locator(".armed")).to_have_text("Approve with 1 change? Enter sends · Esc goes back")
    press(page, "Escape", "Escape")
    expect(page.get_by_label("amount")).to_have_value("120")
    page.get_by_label("amount").focus()
    press(page, "Control+Enter")
    expect(page.get_by_role("button", name="Approve with 1 change")).to_be_enabled()
    press(page, "a", "Enter")
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()


def test_value_is_sent_by_enter(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, ask_value()))))
    read_to_the_end(page)
    press(page, "v")
    expect(page.get_by_label("loyalty_code")).to_be_focused()
    page.keyboard.type("HH-7731")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()


def test_value_is_sent_by_control_enter(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, ask_value()))))
    page.get_by_label("loyalty_code").fill("HH-7731")
    press(page, "a")
    expect(page.get_by_label("loyalty_code")).to_have_value("HH-7731a")
    press(page, "Control+Enter")
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()


def test_claim_and_release_by_key(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(place_of(record), viewport=TABLET)
    press(page, "c")
    expect(page.locator("#ask-line")).to_contain_text("anna handles this until")
    press(page, "u")
    expect(page.get_by_text("you handle it")).to_be_visible()
    expect(page.locator(row_link(page, record))).to_be_focused()
    press(page, "o")
    expect(page.locator("#ask-line")).to_contain_text("anna handles this until")
    press(page, "c")
    expect(page.locator("#ask-line")).to_be_empty()


def test_back_to_the_list_keeps_the_search(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as("/?q=refund", viewport=TABLET)
    press(page, "j", "o")
    expect(page.locator(".approval .wide")).to_be_visible()
    press(page, "u")
    expect(page).to_have_url(f"{site.url}/?q=refund#at={record.id}-i1")


def test_search_by_keys(site: Site, open_as: Open) -> None:
    site.act(asked)
    page = open_as("/")
    press(page, "/")
    page.keyboard.type("tool:payout")
    press(page, "Enter")
    expect(page.get_by_text("Nothing fits tool:payout.")).to_be_visible()
    page.locator(".empty").get_by_role("link", name="Clear").click()
    expect(page.get_by_role("link", name="Refund payment")).to_be_visible()
    press(page, "/", "Escape", "j")
    expect(page.get_by_role("link", name="Refund payment")).to_be_focused()


def test_new_rows_are_shown_by_key(site: Site, open_as: Open) -> None:
    site.act(asked)
    page = open_as("/", viewport=TABLET)
    press(page, "j")
    soon = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 60})))
    expect(page.locator("#fresh")).to_have_text("1 new · Show")
    press(page, ".")
    expect(page.locator(row_link(page, soon))).to_be_visible()


def test_keys_lead_to_the_pages(site: Site, open_as: Open) -> None:
    page = open_as("/", viewport=TABLET)
    for key, place in (("h", "/history"), ("m", "/me"), ("r", "/runs"), ("i", "/")):  # Me has the keys of its links
        press(page, "g", key)
        expect(page).to_have_url(site.url + place)


@both_screens
def test_sheet_lists_the_keys_of_the_page(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(asked)), viewport=viewport)
    press(page, "?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_text("Approve: Enter sends")).to_be_visible()
    expect(sheet.get_by_role("heading", level=3)).to_have_text(["Item", "Everywhere"])
    expect(sheet.get_by_text("Next row")).to_be_hidden()
    sheet.get_by_text("Keys of other pages and states").click()
    expect(sheet.get_by_text("Next row")).to_be_visible()
    expect(sheet.get_by_text("Decide the selected rows together")).to_be_visible()
    press(page, "Escape")
    expect(sheet).to_be_hidden()
    arm(page)


def test_single_keys_can_be_turned_off(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    press(page, "?")
    page.get_by_role("link", name="change it in Me").click()
    choose_keys(page, "Off")
    page.goto(place_of(record))
    press(page, "a", "?")
    expect(page.locator(".armed, dialog")).to_have_count(0)
    page.locator(".tools summary").click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_text("Single keys are off")).to_be_visible()
    page.goto("/me")
    choose_keys(page, "On")
    page.goto(place_of(record))
    arm(page)


def choose_keys(page: Page, choice: str) -> None:
    page.get_by_label("Single-key shortcuts").select_option(choice)
    page.locator("#display-h ~ form").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved for this browser.")).to_be_visible()


def test_letters_with_modifiers_do_nothing(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(asked)))
    press(page, "Control+a", "Alt+a", "Meta+d")
    expect(page.locator(".armed, .chosen:target")).to_have_count(0)
