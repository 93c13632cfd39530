"""A reviewer takes a decision back while the quorum is short, and decides anew on the same page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from service.core.wiring import Wiring
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, decide, make_ask, place_of

TERMS = {"quorum": {"approve": 2}, "reviewers": ["anna", "ben", "carla"]}
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1440, "height": 900}


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_reviewer_takes_a_decision_back_and_denies(
    site: Site, open_as: Callable[..., Page], size: dict[str, int]
) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms=TERMS)))
    page = open_as(place_of(record), viewport=size)
    read_to_the_end(page)
    page.get_by_role("button", name="Approve EUR 250.00").click()
    expect(page.get_by_text("You approved. Waiting for 1 more.")).to_be_visible()
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_role("button", name="Take it back")).to_have_count(0)
    expect(page.locator(".quorum").first).to_contain_text("0 of 2 have approved")
    page.get_by_role("link", name="Deny…").click()
    page.get_by_role("button", name="Deny and go on").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()

    async def read(wiring: Wiring) -> list[tuple[str, bool]]:
        item = (await wiring.desk.suspensions.read(record.id)).record.items[0]
        return [(one.by.id, one.retracted) for one in item.voided]

    assert site.act(read) == [("anna", True)]


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_reviewer_changes_a_decision_with_one_press(
    site: Site, open_as: Callable[..., Page], size: dict[str, int]
) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={**TERMS, "quorum": {"approve": 2, "deny": 2}})))
    page = open_as(place_of(record), viewport=size)
    read_to_the_end(page)
    page.get_by_role("button", name="Approve EUR 250.00").click()
    expect(page.locator(".ineligible")).to_have_text("You approved. Waiting for 1 more.")
    expect(page.get_by_role("button", name="Approve EUR 250.00")).to_have_count(0)
    bar = page.locator(".decide").bounding_box()
    assert bar is not None
    assert bar["height"] <= 96
    page.get_by_role("link", name="Deny…").click()
    page.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator(".ineligible")).to_have_text("You denied. Waiting for 1 more.")
    expect(page.get_by_role("link", name="Deny…")).to_have_count(0)
    page.get_by_role("button", name="Approve EUR 250.00").click()
    expect(page.locator(".ineligible")).to_have_text("You approved. Waiting for 1 more.")

    async def read(wiring: Wiring) -> tuple[list[str], list[str]]:
        item = (await wiring.desk.suspensions.read(record.id)).record.items[0]
        return [made.action for made in item.decisions], [made.action for made in item.voided]

    assert site.act(read) == (["approve"], ["approve", "deny"])


def test_form_sent_again_after_a_retraction_decides_nothing(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms=TERMS)))
    stale = open_as(place_of(record))
    read_to_the_end(stale)
    sent = stale.evaluate("Object.fromEntries(new FormData(document.getElementById('approve-form')))")
    stale.get_by_role("button", name="Approve EUR 250.00").click()
    stale.get_by_role("button", name="Take it back").click()
    expect(stale.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
    stale.evaluate(
        "sent => fetch(location.pathname, {method: 'POST', body: new URLSearchParams(sent)}).then(r => r.status)", sent
    )

    async def read(wiring: Wiring) -> int:
        return len((await wiring.desk.suspensions.read(record.id)).record.items[0].decisions)

    assert site.act(read) == 0


def test_item_of_a_deactivated_reviewer_says_whose_decision_lapsed(site: Site, open_as: Callable[..., Page]) -> None:
    async def story(wiring: Wiring) -> str:
        record = await decide(wiring, await asked(wiring, make_ask(terms=TERMS)), "approve")
        return place_of(record)

    place = site.act(story)
    page = open_as(place)
    expect(page.locator(".quorum").first).to_contain_text("1 of 2 have approved")

    async def lapse(wiring: Wiring) -> None:
        await wiring.desk.void_decisions(place.split("/")[-2], ("ben",))

    site.act(lapse)
    expect(page.locator(".quorum").first).to_contain_text("0 of 2 have approved")
