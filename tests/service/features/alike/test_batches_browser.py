"""A batch in a real browser: the sum in its button, an outlier that stays one, and the way on."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND_ARGS, asked, make_ask

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])


async def ask_refunds(wiring: Wiring) -> list[SuspensionRecord]:
    """Three usual refunds and one of 4,800, and another call."""
    records = [
        await asked(wiring, make_ask(args={**REFUND_ARGS, "order_id": f"B-{amount}", "amount": amount}))
        for amount in (120.5, 130, 125, 4800)
    ]
    await asked(wiring, make_ask(args={"amount": 1, "currency": "USD"}))
    return records


def read_rows(page: Page) -> None:
    """Have every row shown."""
    page.wait_for_load_state()
    while page.locator(".approval .wide[aria-disabled]").count():
        page.evaluate("document.querySelector('.approval .wide[aria-disabled]')?.click()")
    settle(page)


@SIZES
def test_button_names_the_sum_and_the_outlier_keeps_its_flag(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    records = site.act(ask_refunds)
    page = open_as(f"/batch/{records[0].id}-i1", viewport=viewport)
    read_rows(page)
    approve = page.locator(".approval .wide")
    expect(approve).to_have_text("Approve 3 · EUR 375.50")
    page.get_by_label("Decide row 1").uncheck()
    expect(approve).to_have_text("Approve 2 · EUR 255.00")
    page.get_by_label("Decide row 1").check()
    expect(approve).to_have_text("Approve 3 · EUR 375.50")
    settle(page)
    approve.click()
    expect(page.locator("#results")).to_have_text("3 approved")
    outlier = page.locator(".alike-rows tbody tr")
    expect(outlier).to_have_count(1)
    expect(outlier.locator(".flag")).to_have_text(re.compile("median"))
    expect(outlier.get_by_role("checkbox")).not_to_be_checked()
    outlier.get_by_role("checkbox").check()
    read_rows(page)
    page.locator(".approval .wide").click()
    expect(page.get_by_text("Nothing is left here.")).to_be_visible()
    page.get_by_role("link", name="Next item").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("USD 1.00")
