"""A reviewer sees what a call would do first, asks for it again, and decides with the edit's own preview."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.previews import Preview
from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND_ARGS, asked, place_of
from tests.service.features.test_previews import draft, shown

Open = Callable[..., Page]


async def preview(wiring: Wiring, record: SuspensionRecord, made: Preview) -> None:
    """What a worker does with a request."""
    await wiring.desk.store_preview(record.id, "i1", made)


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_preview_is_shown_first_and_asked_for_again(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(lambda wiring: asked(wiring, draft(shown("sends 250 EUR"))))
    page = open_as(place_of(record), viewport=viewport)
    effect = page.get_by_role("region", name="What it would do")
    expect(effect).to_contain_text("sends 250 EUR")
    call = page.get_by_role("region", name="What will run")
    above, below = effect.bounding_box(), call.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]
    effect.get_by_role("button", name="Preview again").click()
    expect(effect).to_contain_text("A worker makes the preview.")
    site.act(lambda wiring: preview(wiring, record, shown("sends 260 EUR", "b")))
    expect(effect).to_contain_text("sends 260 EUR")


def test_edit_gets_a_preview_of_its_own(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, draft(shown("sends 250 EUR"))))
    page = open_as(place_of(record))
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("amount", exact=True).fill("120")
    page.get_by_role("button", name="Review 1 change").click()
    review = page.get_by_role("region", name="Your changes")
    expect(review).to_contain_text("There is no preview of the edited arguments.")
    expect(page.get_by_text("sends 250 EUR")).to_have_count(0)
    page.get_by_role("button", name="Preview changes").click()
    expect(review).to_contain_text("A worker makes the preview.")
    site.act(lambda wiring: preview(wiring, record, shown("sends 120 EUR", "b", args={**REFUND_ARGS, "amount": 120})))
    page.get_by_role("button", name="Show the preview").click()
    expect(review).to_contain_text("sends 120 EUR")
    read_to_the_end(page)
    page.get_by_role("button", name="Approve with 1 change").click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
