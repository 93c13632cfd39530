"""The arguments read, as a tree and as JSON: in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.service.edge.web.orders import ORDER, ORDER_ARGS, ask_order
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of

ARABIC = "\u0627\u0644\u0645\u0648\u0639\u062f 2026-12-03 \u0634\u0643\u0631\u0627\nEnglish 11:30"

Open = Callable[..., Page]


async def ask_backwards(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of an order with a note in Arabic."""
    return await asked(wiring, make_ask(ORDER, {**ORDER_ARGS, "note": ARABIC, "total": 1234567}))


def test_views_change_by_keys_and_approve_leads_back_to_reading(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_order)), viewport={"width": 390, "height": 500})
    expect(page.locator(".tree, .raw").filter(visible=True)).to_have_count(0)
    page.keyboard.press("2")
    expect(page.locator(".tree .like").get_by_role("row")).to_have_text(["skucount", "CUP-72", "CUP-81"])
    expect(page.locator(".tree").get_by_text("tags [fragile, gift]")).to_be_visible()
    expect(page.locator(".read")).to_be_hidden()
    expect(page.locator(".approval .wide")).to_be_disabled()
    page.keyboard.press("3")
    expect(page.locator(".raw")).to_contain_text('"account": "4711"')
    page.keyboard.press("]")
    expect(page.locator(".read").first).to_be_visible()
    expect(page.get_by_label("Read")).to_be_checked()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_right_to_left_text_keeps_the_order_of_its_dates(site: Site, open_as: Open, scripts: bool) -> None:
    page = open_as(place_of(site.act(ask_backwards)), java_script_enabled=scripts)
    value = page.locator(".read").get_by_role("row", name="note").locator("td")
    expect(value.locator(".ltr")).to_have_text(["2026-12-03", "11:30"])
    expect(value).to_have_css("unicode-bidi", "plaintext")
    page.get_by_label("As stored, left to right").check()
    expect(value).to_have_css("unicode-bidi", "bidi-override")
    numbers = page.locator(".read").get_by_role("row", name="total").locator("td")
    expect(numbers).to_have_text("1234567")
    assert numbers.locator(".three").count() == 2
