"""A denial leads, and no line about it is green, nor one about an approval by itself: in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, decide, make_ask, place_of

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
WIDE: ViewportSize = {"width": 1440, "height": 900}


def colour(page: Page, name: str) -> object:
    """The colour of a custom property, as the browser computes it."""
    return page.evaluate(
        """name => {
            const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = `var(${name})`;
            const { color } = getComputedStyle(probe);
            probe.remove();
            return color;
        }""",
        name,
    )


def expect_colour(place: Locator, name: str) -> None:
    expect(place).to_have_css("color", str(colour(place.page, name)))


@pytest.mark.parametrize(("act", "tone"), [("deny", "--bad"), ("approve", "--good")])
def test_line_after_a_decision_has_its_colour(site: Site, open_as: Open, act: str, tone: str) -> None:
    site.act(lambda wiring: asked(wiring, make_ask(args={"amount": 101, "currency": "EUR"})))
    page = open_as("/", viewport=WIDE)
    pane = page.frame_locator(".pane iframe")
    expect(pane.get_by_role("button", name="Approve EUR 101.00")).to_be_enabled()
    expect(pane.locator(".decide[aria-disabled]")).to_have_count(0)
    if act == "deny":
        pane.get_by_text("Deny…", exact=True).click()
        expect(pane.locator(".decide[aria-disabled]")).to_have_count(0)
        pane.get_by_role("button", name="Deny and go on").click()
    else:
        pane.get_by_role("button", name="Approve EUR 101.00").click()
    expect(page.locator(".latest")).to_contain_text("anna")
    expect_colour(page.locator(".latest"), tone)


async def deny(wiring: Wiring) -> SuspensionRecord:
    return await decide(wiring, await asked(wiring), "deny", message="never for D-1")


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_denial_is_red_and_leads_the_next_item(site: Site, open_as: Open, viewport: ViewportSize, scheme: str) -> None:
    denied = site.act(deny)
    page = open_as(place_of(denied), viewport=viewport, color_scheme=scheme)
    expect(page.locator(".receipt")).to_have_css("border-left-color", str(colour(page, "--bad")))
    mark = page.locator(".stages li").first.evaluate("li => getComputedStyle(li, '::before').color")
    assert mark == colour(page, "--bad")

    async def approve_and_ask(wiring: Wiring) -> SuspensionRecord:
        await decide(wiring, await asked(wiring, make_ask(args={"order_id": "B", "amount": 9})), "approve", name="anna")
        return await asked(wiring)

    page.goto(place_of(site.act(approve_and_ask)))
    settle(page)
    line = page.locator(".denied")
    expect(line).to_contain_text("never for D-1")
    expect_colour(line, "--bad")
    first, title = line.bounding_box(), page.locator("h1").bounding_box()
    assert first is not None
    assert title is not None
    assert title["y"] + title["height"] <= first["y"]
    for later in ("#standing .now", ".since", "#call"):
        box = page.locator(later).bounding_box()
        assert box is not None
        assert first["y"] + first["height"] <= box["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_call_approved_by_its_deadline_is_amber_in_history_and_run(site: Site, open_as: Open, scheme: str) -> None:
    async def approve_both(wiring: Wiring) -> SuspensionRecord:
        await decide(wiring, await asked(wiring, agent="by-hand"), "approve")
        alone = {"timeout_s": 0, "fallback": {"action": "approve"}, "unattended_approval": True}
        return await asked(wiring, make_ask(terms=alone), agent="by-itself")

    record = site.act(approve_both)
    page = open_as("/history", viewport=DESKTOP, color_scheme=scheme)
    for agent, tone in (("by-itself", "--wait"), ("by-hand", "--good")):
        expect_colour(page.locator("tbody tr", has_text=agent).locator(".state"), tone)
    page.goto(f"/runs/{record.run.id}")
    expect_colour(page.locator(".items .state"), "--wait")
