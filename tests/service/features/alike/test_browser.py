"""Alike items in a real browser: three presses for ten, sums, and what other people decide meanwhile."""

import re
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, decide
from tests.service.edge.web.test_gallery import check_page
from tests.service.features.alike.test_pages import ask_refunds, refund, row_id

Open = Callable[..., Page]


async def ask_ten(wiring: Wiring) -> list[SuspensionRecord]:
    return await ask_refunds(wiring, [*range(100, 110)])


async def ask_odd(wiring: Wiring) -> list[SuspensionRecord]:
    for record in await ask_refunds(wiring, [129] * 6):
        await decide(wiring, record, "approve", name="anna")
    return await ask_refunds(wiring, [120.5, 4902, 121, 0.25])


def settle(page: Page) -> None:
    """Wait until the bar takes presses."""
    page.wait_for_load_state()
    expect(page.locator(".decide[aria-disabled]")).to_have_count(0)


def test_ten_alike_take_three_keys(site: Site, open_as: Open) -> None:
    site.act(ask_ten)
    page = open_as("/")
    page.locator("li.several a").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".counted")).to_have_text("All 10 rows shown")
    settle(page)
    page.keyboard.press("a")
    expect(page.locator(".armed")).to_have_text("Approve 10 · EUR 1,045.00? Enter sends · Esc goes back")
    page.keyboard.press("Enter")
    expect(page.locator("#results")).to_have_text("10 approved")


def test_ten_alike_take_two_clicks_on_a_desktop(site: Site, open_as: Open) -> None:
    site.act(ask_ten)
    page = open_as("/")
    page.locator("li.several").click()
    expect(page.locator(".counted")).to_have_text("All 10 rows shown")
    settle(page)
    page.locator(".approve").click()
    expect(page.locator("#results")).to_have_text("10 approved")


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "light"), (DESKTOP, "dark")], ids=["phone", "desktop"])
def test_table_is_summed_and_approved_after_its_last_row(
    site: Site, open_as: Open, viewport: ViewportSize, scheme: str
) -> None:
    records = site.act(ask_odd)
    page = open_as("/", viewport={**viewport, "height": 500}, color_scheme=scheme)
    page.emulate_media(reduced_motion="reduce")
    check_page(page, "inbox with alike items")
    page.locator("li.several a").click()
    approve, total = page.locator(".approve"), page.locator(".sum")
    expect(approve).to_have_text(re.compile("Approve 3 · EUR 241.75 · [1-4] rows? not yet shown"))
    check_page(page, "alike items")
    settle(page)
    approve.click(force=True)  # leads to the next row
    expect(page.locator("#results")).to_have_count(0)
    for line in page.locator(".alike-rows tbody tr").all():
        line.evaluate("node => node.scrollIntoView({ block: 'center' })")
    expect(approve).to_have_text("Approve 3 · EUR 241.75")
    expect(total).to_have_text("EUR 241.75")
    page.get_by_label("Decide row 2").check()
    expect(total).to_have_text("EUR 5,143.75")
    for row in (1, 2, 3, 4):
        page.get_by_label(f"Decide row {row}").uncheck()
    expect(approve).to_have_attribute("aria-disabled", "true")
    expect(total).to_have_text("EUR 0.00")
    page.get_by_label("Decide row 1").check()
    settle(page)
    page.get_by_text("Deny 1…").click()
    page.get_by_label("Reason").fill("Not now")
    settle(page)
    page.get_by_label("Reason").press("Control+Enter")
    expect(page.locator("#results")).to_have_text("1 denied")
    check_page(page, "answered batch")

    async def read(wiring: Wiring) -> str | None:
        return (await wiring.desk.suspensions.read(records[0].id)).record.items[0].decisions[0].message

    assert site.act(read) == "Not now"


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_denial_of_several_covers_no_row(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    """The reason is in the page, and its button alone is in the bar: no approval stands beside it."""
    site.act(ask_ten)
    page = open_as("/", viewport={**viewport, "height": 500})
    page.locator("li.several a").click()
    expect(page.locator(".alike-rows tbody tr")).to_have_count(10)
    for line in page.locator(".alike-rows tbody tr").all():
        line.evaluate("node => node.scrollIntoView({ block: 'center' })")
    expect(page.locator(".approve")).to_have_text(re.compile("^Approve 10 · EUR "))
    settle(page)
    page.get_by_role("link", name="Deny 10…").click()
    expect(page.get_by_label("Reason")).to_be_visible()
    assert page.get_by_label("Reason").evaluate("node => !node.closest('.decide')")
    expect(page.locator(".approve")).to_be_hidden()
    bar = page.locator(".decide").bounding_box()
    assert bar is not None
    assert bar["height"] < 120, "the bar holds buttons alone"
    page.keyboard.press("Escape")
    expect(page.locator(".approve")).to_be_visible()
    settle(page)
    page.get_by_role("link", name="Deny 10…").click()
    page.get_by_label("Reason").fill("Not now")
    settle(page)
    page.get_by_role("button", name="Deny 10").click()
    expect(page.locator("#results")).to_have_text("10 denied")


def test_item_that_is_decided_elsewhere_loses_its_tick(site: Site, open_as: Open) -> None:
    records = site.act(ask_ten)
    page = open_as(f"/batch/{row_id(records[0])}")
    expect(page.locator(".approve")).to_have_text(re.compile("^Approve 10 · EUR "))
    site.act(lambda wiring: decide(wiring, records[3], "deny"))
    row = page.locator(f"[id='{row_id(records[3])}']")
    expect(row).to_contain_text("ben denied this")
    expect(row.locator("input")).to_be_disabled()
    expect(page.locator(".approve")).to_have_text(re.compile("^Approve 9 · EUR "))
    expect(page.locator(".sum")).to_have_text("EUR 942.00")


def test_row_of_alike_items_follows_their_decisions(site: Site, open_as: Open) -> None:
    records = site.act(lambda wiring: ask_refunds(wiring, [1, 2, 3]))
    page = open_as("/")
    row = page.locator("li.several")
    expect(row).to_contain_text("3 × Refund payment EUR 6.00")
    site.act(lambda wiring: asked(wiring, refund(9, 4)))
    expect(row).to_contain_text("4 × Refund payment EUR 10.00")
    expect(page.locator("#rows li")).to_have_count(1)
    for record in records[:2]:
        site.act(partial(decide, record=record, action="approve"))
    expect(row).to_contain_text("2 × Refund payment EUR 7.00")
