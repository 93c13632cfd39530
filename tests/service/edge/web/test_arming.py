"""The bar of a decision on a phone, and the second question before a call with a severe warning: in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end, settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of

PAY = ToolDefinition(name="pay_out")
QUESTION = "Approve: Pay out EUR 4,890.00 to D. Whitfield?"
NARROW: ViewportSize = {"width": 320, "height": 568}

Open = Callable[..., Page]
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])


async def ask_severe(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a payment with a look-alike letter."""
    args: JsonObject = {"to": "D. Whitfield", "amount": 4890, "currency": "EUR", "note": "hooks.ex\u0430mple.net"}
    return await asked(wiring, make_ask(PAY, args))


@SIZES
def test_severe_call_is_approved_with_two_presses(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(ask_severe)), viewport=viewport)
    read_to_the_end(page)
    button = page.locator(".approval .wide")
    settle(page)
    button.dblclick()
    expect(page.locator(".armed")).to_contain_text(QUESTION)
    settle(page)
    page.get_by_role("heading", level=1).click()
    expect(page.locator(".armed")).to_have_count(0)
    settle(page)
    button.click()
    expect(page.locator(".armed")).to_contain_text(QUESTION)
    settle(page)
    button.click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_severe_call_is_approved_by_press_and_enter(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_severe)))
    read_to_the_end(page)
    settle(page)
    page.locator(".approval .wide").click()
    page.keyboard.press("Escape")
    expect(page.locator(".armed")).to_have_count(0)
    settle(page)
    page.locator(".approval .wide").press("Enter")
    expect(page.locator(".armed")).to_contain_text(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_severe_call_is_asked_once_more_without_scripts(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_severe)), java_script_enabled=False)
    expect(page.get_by_text(QUESTION)).to_be_hidden()
    page.locator(".approval .wide").click()
    expect(page.get_by_text(QUESTION)).to_be_visible()
    page.locator(".approval .wide").click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


@pytest.mark.parametrize("viewport", [PHONE, NARROW], ids=["390 px", "320 px"])
def test_bar_of_a_phone_is_one_row_of_48_px(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(asked)), viewport=viewport)
    read_to_the_end(page)
    approve = page.get_by_role("button", name="Approve EUR 250.00")
    boxes = [one.bounding_box() for one in (approve, page.locator(".starter"), page.locator(".others"))]
    assert [(round(box["height"]), box["y"]) for box in boxes if box] == [(48, boxes[0]["y"] if boxes[0] else 0)] * 3
    assert boxes[0]
    assert boxes[0]["width"] > viewport["width"] * 0.4
    expect(page.locator(".begin")).to_be_hidden()
    page.get_by_label("More actions").check(force=True)
    expect(page.get_by_role("link", name="Ask or handle")).to_be_visible()
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(page).to_have_url(re.compile("answer=edit"))
