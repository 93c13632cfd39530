"""A call that may already have run: the page of its item, and the way there from the earlier receipt."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.items import Doubt
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.permits import put_in_doubt
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end, settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND, REFUND_ARGS, asked, decide, lose_worker, place_of

CALL = ToolCall(call_id="call_0", index=0, name=REFUND.name, args=REFUND_ARGS)
DOUBT = Doubt(begun_at_ms=1_795_262_584_120, holder="host:1", attempt=1, idempotency_key="sus_0:i1")


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize(
    ("act", "choice"),
    [("Continue without running it", "skip"), ("Run it again", "run_again"), ("Stop the run", "fail")],
)
def test_call_stands_before_buttons_that_name_their_act(
    site: Site, open_as: Callable[..., Page], viewport: ViewportSize, act: str, choice: str
) -> None:
    record = site.act(lambda wiring: asked(wiring, put_in_doubt(CALL, REFUND.digest, DOUBT)))
    page = open_as(place_of(record), viewport=viewport)
    expect(page.get_by_role("heading", level=1)).to_have_text("Refund payment EUR 250.00: did it run?")
    call, answers = page.locator("#call").bounding_box(), page.locator(".doubt-choices").bounding_box()
    assert call is not None
    assert answers is not None
    assert call["y"] + call["height"] <= answers["y"]
    expect(page.get_by_role("button", name="Confirm")).to_have_count(0)
    read_to_the_end(page)
    settle(page)
    page.get_by_role("button", name=act).click()
    expect(page.locator(".doubt-choices")).to_have_count(0)
    expect(page.locator(".receipt")).to_be_visible()

    async def read(wiring: Wiring) -> object:
        (item,) = (await wiring.desk.suspensions.read(record.id)).record.items
        return item.outcome.value if item.outcome else None

    assert site.act(read) == {"choice": choice}


def test_buttons_wait_until_the_call_was_shown(site: Site, open_as: Callable[..., Page]) -> None:
    """The answers stand in the page, not over its end: a value at the lower edge of the window is in view."""
    record = site.act(lambda wiring: asked(wiring, put_in_doubt(CALL, REFUND.digest, DOUBT)))
    page = open_as(place_of(record), viewport={"width": 390, "height": 400})
    again = page.get_by_role("button", name="Run it again")
    expect(again).to_be_disabled()
    table = page.locator(".what .read").last
    table.evaluate("node => scrollTo(0, node.getBoundingClientRect().bottom + scrollY - innerHeight)")
    while again.get_attribute("aria-disabled"):
        page.keyboard.press("]")
    expect(again).to_be_enabled()


def test_result_with_another_answer_is_kept(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, put_in_doubt(CALL, REFUND.digest, DOUBT)))
    page = open_as(place_of(record))
    read_to_the_end(page)
    settle(page)
    page.keyboard.press("v")
    page.keyboard.type("rf_81")
    page.get_by_role("button", name="Run it again").click()
    expect(page.locator(".doubt .problem")).to_contain_text("A result is accepted only with skip.")
    expect(page.get_by_label("Its result")).to_have_value("rf_81")


def test_earlier_receipt_leads_to_the_item_in_doubt(site: Site, open_as: Callable[..., Page]) -> None:
    async def story(wiring: Wiring) -> tuple[SuspensionRecord, SuspensionRecord]:
        approved = await decide(wiring, await asked(wiring), "approve")
        return approved, await lose_worker(wiring, approved)

    earlier, later = site.act(story)
    page = open_as(place_of(earlier))
    page.get_by_role("link", name="Say whether it ran").click()
    expect(page).to_have_url(f"{site.url}{place_of(later)}")
    expect(page.get_by_role("heading", name="Refund payment EUR 250.00: did it run?")).to_be_visible()
