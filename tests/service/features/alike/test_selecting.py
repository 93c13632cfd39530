"""Rows of the inbox that a reviewer selects, by keys, with the mouse and by a long press, in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.builders import person
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import asked, decide, make_ask, place_of
from tests.service.edge.web.test_gallery import check_page
from tests.service.features.alike.test_pages import refund, row_id

TABLET: ViewportSize = {"width": 1024, "height": 768}
Open = Callable[..., Page]


async def ask_four(wiring: Wiring) -> list[SuspensionRecord]:
    """Two alike items and two others, the earliest deadline first."""
    agents = ("shop", "shop", "support", "billing")
    drafts = [refund(place, 100 + place, terms={"timeout_s": 900 + place}) for place in range(4)]
    return [await asked(wiring, draft, agent=agent) for draft, agent in zip(drafts, agents, strict=True)]


def box_of(page: Page, record: SuspensionRecord) -> Locator:
    return page.locator(f"[id='{row_id(record)}'] input")


def expect_selected(page: Page, *records: SuspensionRecord) -> None:
    if records:
        expect(page.locator(".selected")).to_have_text(f"{len(records)} selected")
    expect(page.locator("#selection")).to_be_visible(visible=bool(records))
    expect(page.locator("#rows .pick :checked")).to_have_count(len(records))
    for record in records:
        expect(box_of(page, record)).to_be_checked()


def expect_together(page: Page, site: Site, *records: SuspensionRecord) -> None:
    """Expect the page that decides these items."""
    expect(page).to_have_url(f"{site.url}/batch?" + "&".join(f"item={row_id(record)}" for record in records))
    expect(page.locator(".alike-rows tbody tr")).to_have_count(len(records))


async def test_only_rows_that_the_reader_can_decide_are_selectable(settings: Settings) -> None:
    async with visit(settings) as anna:
        mine = await asked(anna.wiring)
        await asked(anna.wiring, make_ask(terms={"reviewers": ["ben"]}))
        for place in ("/", f"/rows?ids={mine.id}"):
            page = await anna.read(place)
            assert page.count('class="pick"') == 1
            assert f'form="selection" name="item" value="{row_id(mine)}"' in page


@pytest.mark.parametrize("viewport", [TABLET, DESKTOP], ids=["list", "beside an item"])
def test_rows_are_selected_and_decided_together_by_keys(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    first, second, third, fourth = site.act(ask_four)
    page = open_as("/", viewport=viewport)
    page.wait_for_load_state()
    page.keyboard.press("?")
    expect(page.get_by_text("Select the row", exact=True)).to_be_visible()
    expect(page.get_by_text("Decide the selected rows together")).to_be_hidden()
    page.keyboard.press("Escape")
    page.locator(f"[id='{row_id(first)}'] a").focus()
    page.keyboard.press("*")
    expect_selected(page, first, second)
    page.keyboard.press("Escape")
    expect_selected(page)
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("Shift+J")
    page.keyboard.press("Shift+J")
    expect_selected(page, first, second, third, fourth)
    page.keyboard.press("Shift+K")
    page.keyboard.press("x")
    expect_selected(page, first, second, fourth)
    page.keyboard.press("?")
    expect(page.get_by_text("Decide the selected rows together")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    expect_together(page, site, first, second, fourth)


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "light"), (DESKTOP, "dark")], ids=["phone", "desktop"])
def test_rows_are_selected_and_decided_together_with_the_mouse(
    site: Site, open_as: Open, viewport: ViewportSize, scheme: str
) -> None:
    first, second, third, fourth = site.act(ask_four)
    page = open_as("/", viewport=viewport, color_scheme=scheme)
    page.emulate_media(reduced_motion="reduce")
    for record in (second, third, fourth):
        box_of(page, record).check()
    check_page(page, "inbox with a selection")
    box_of(page, third).uncheck()
    expect_selected(page, second, fourth)
    page.get_by_role("button", name="Clear").click()
    expect_selected(page)
    box_of(page, first).check()
    box_of(page, second).check()
    page.get_by_role("button", name="Decide together").click()
    expect_together(page, site, first, second)


def test_selection_stays_with_its_rows_through_changes(site: Site, open_as: Open) -> None:
    first, second, third, fourth = site.act(ask_four)
    page = open_as("/", viewport=TABLET)
    page.wait_for_load_state()
    for record in (second, third):
        box_of(page, record).check()
    page.mouse.move(0, 0)
    page.locator("h1").click()  # neither the pointer nor the focus is in the list
    place = box_of(page, second).bounding_box()
    soon = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 60})))
    expect(page.locator("#fresh")).to_have_text("1 new · Show")
    site.act(lambda wiring: decide(wiring, first, "deny"))
    expect(page.locator(f"[id='{row_id(first)}']")).to_contain_text("ben denied this")
    expect_selected(page, second, third)
    site.act(lambda wiring: decide(wiring, third, "deny"))
    expect_selected(page, second)
    site.act(lambda wiring: wiring.desk.claim(second.id, "i1", person("ben")))
    expect(page.locator(f"[id='{row_id(second)}']")).to_contain_text("ben handles it")
    expect_selected(page, second)
    assert box_of(page, second).bounding_box() == place
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#rows li.gone")).to_have_count(0)
    page.locator("#fresh").click()
    expect(page.locator(f"[id='{row_id(soon)}']")).to_be_visible()
    expect_selected(page)
    expect(box_of(page, fourth)).not_to_be_checked()


def test_long_press_selects_on_a_touch_screen(site: Site, open_as: Open) -> None:
    first, second, *_ = site.act(ask_four)
    page = open_as("/", viewport=PHONE, has_touch=True, is_mobile=True)
    page.wait_for_load_state()
    expect(box_of(page, first)).to_be_hidden()
    row = page.locator(f"[id='{row_id(first)}']").bounding_box()
    assert row is not None
    driver = page.context.new_cdp_session(page)
    finger: dict[str, Any] = {"x": row["x"] + 90, "y": row["y"] + 20}
    driver.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
    expect_selected(page, first)
    driver.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    box_of(page, second).tap()
    expect_selected(page, first, second)
    page.locator(f"[id='{row_id(first)}'] a").tap()
    expect(page).to_have_url(site.url + place_of(first))
