"""A call that may already have run: the page of its item, and the way there from the earlier receipt."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from sayso.core.records.items import Doubt
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.permits import put_in_doubt
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND, REFUND_ARGS, asked, decide, lose_worker, place_of

CALL = ToolCall(call_id="call_0", index=0, name=REFUND.name, args=REFUND_ARGS)
DOUBT = Doubt(begun_at_ms=1_795_262_584_120, holder="host:1", attempt=1, idempotency_key="sus_0:i1")


def test_reviewer_picks_one_of_three_cards(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, put_in_doubt(CALL, REFUND.digest, DOUBT)))
    page = open_as(place_of(record))
    expect(page.get_by_role("heading", name="Did refund_payment run? Nobody knows.")).to_be_visible()
    expect(page.locator(".doubt-choices").get_by_role("radio")).to_have_count(3)
    expect(page.get_by_role("button", name="Send")).to_have_count(0)
    read_to_the_end(page)
    page.get_by_label("It did run").check()
    page.get_by_label("Its result").fill("rf_81")
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="anna chose to skip it")).to_be_visible()


def test_cards_above_the_values_hide_none_of_them(site: Site, open_as: Callable[..., Page]) -> None:
    """The cards stand in the page, not over its end: a value at the lower edge of the window is in view."""
    record = site.act(lambda wiring: asked(wiring, put_in_doubt(CALL, REFUND.digest, DOUBT)))
    page = open_as(place_of(record), viewport=PHONE)
    confirm = page.locator(".doubt .wide")
    expect(confirm).to_be_disabled()
    table = page.locator(".what .read").last
    table.evaluate("node => scrollTo(0, node.getBoundingClientRect().bottom + scrollY - innerHeight)")
    expect(confirm).to_be_enabled()


def test_earlier_receipt_leads_to_the_item_in_doubt(site: Site, open_as: Callable[..., Page]) -> None:
    async def story(wiring: Wiring) -> tuple[SuspensionRecord, SuspensionRecord]:
        approved = await decide(wiring, await asked(wiring), "approve")
        return approved, await lose_worker(wiring, approved)

    earlier, later = site.act(story)
    page = open_as(place_of(earlier))
    page.get_by_role("link", name="Say whether it ran").click()
    expect(page).to_have_url(f"{site.url}{place_of(later)}")
    expect(page.get_by_role("heading", name="Did refund_payment run?")).to_be_visible()
