"""The bar of the decision in a real browser: its height, its buttons, and its place without scripts."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import begin_edit, read_to_the_end, settle, unfold
from tests.service.edge.web.sites import Site, settings_for
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, decide, make_ask, place_of

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
MOST_PX = 96
BUTTON_PX = 48
NARROW: ViewportSize = {"width": 320, "height": 640}
LARGE: ViewportSize = {"width": 640, "height": 400}
"""A desktop of 1280 x 800 at 200 %."""

SCREENS = pytest.mark.parametrize(
    "viewport", [PHONE, NARROW, LARGE, DESKTOP], ids=["phone", "narrow", "large", "desktop"]
)
RULES = """\
version: 1
default: request_approval
rules:
  - {id: refunds-over-100, tool: refund_payment, action: request_approval, grants: {longest: 1d, count: 10}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, RULES)


async def ask_all(wiring: Wiring) -> SuspensionRecord:
    """A call that can be approved, edited, denied, granted, answered with an offer, and extended."""
    draft: ItemDraft = make_ask(terms={"timeout_s": 9000, "extend_by_s": 9000})
    return await asked(wiring, draft.model_copy(update={"rule_version": wiring.rules.policy().version}))


def expect_low(page: Page, *names: str) -> None:
    """The bar has these buttons, all of one height, and is no higher than it may be."""
    settle(page)
    buttons = page.locator(".decide").locator("button, .button").locator("visible=true")
    texts = [text.split(" · ")[0] for text in buttons.all_inner_texts()]
    assert sorted(texts) == sorted(names)
    heights = buttons.evaluate_all("all => all.map(button => Math.round(button.getBoundingClientRect().height))")
    assert heights == [BUTTON_PX] * len(names)
    assert page.locator(".decide").evaluate("bar => bar.offsetHeight") <= MOST_PX
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def has_menu(page: Page) -> bool:
    """Whether the bar has place for two buttons, and the others stand behind a third."""
    return page.locator(".others").is_visible()


@SCREENS
def test_bar_is_low_whatever_was_begun(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(ask_all)), viewport=viewport)
    page.wait_for_load_state()
    further = ("Grant…", "Offer…")
    always = ("Deny…", "…") if has_menu(page) else ("Edit", "Deny…", *further)
    expect_low(page, "Approve EUR 250.00", *always)
    if has_menu(page):
        page.get_by_label("More actions").check(force=True)
        expect_low(page, "Approve EUR 250.00", *always, "Edit", "More time", "Ask or handle", *further)
        page.get_by_label("More actions").uncheck(force=True)
    read_to_the_end(page)
    settle(page)
    page.keyboard.press("a")
    expect(page.locator(".armed")).to_be_visible()
    expect_low(page, "Approve EUR 250.00", *always)
    page.keyboard.press("Escape")
    unfold(page, "Ask or handle")
    page.locator("#inquiry").fill("Which cup?")
    expect_low(page, *always)
    page.locator("#inquiry").fill("")
    page.get_by_text("Deny…", exact=True).click()
    expect_low(page, "Deny and go on", "Back")
    page.get_by_role("link", name="Back").click()
    settle(page)
    begin_edit(page)
    expect(page.locator("#edit")).to_be_visible()
    expect_low(page, "Stop editing", "Deny…")
    page.get_by_label("amount").fill("120")
    expect_low(page, "Review 1 change", "Stop editing", "Deny…")
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("button", name="Approve with 1 change")).to_be_visible()
    expect_low(page, "Approve with 1 change", "Back")


@SCREENS
def test_grant_keeps_its_sentence_and_buttons(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(ask_all)), viewport=viewport)
    read_to_the_end(page)
    if has_menu(page):
        page.get_by_label("More actions").check(force=True)
    settle(page)
    page.get_by_text("Grant…", exact=True).click()
    expect_low(page, "Show what would run…", "Back")
    page.get_by_role("button", name="Show what would run…").click()
    expect(page.locator(".granting .sentence")).to_be_visible()
    with page.expect_response(lambda response: "/items/" in response.url):
        page.evaluate("document.dispatchEvent(new Event('refresh'))")
    expect_low(page, "Approve and grant", "Show the sentence again", "Back")


async def ask_with_versions(wiring: Wiring) -> SuspensionRecord:
    record = await asked(wiring, make_ask(terms={"quorum": {"approve": 2}}))
    return await decide(wiring, record, "approve", args={**REFUND_ARGS, "amount": 120})


async def ask_severe(wiring: Wiring) -> SuspensionRecord:
    args: JsonObject = {"to": "D. Whitfield", "amount": 4890, "currency": "EUR", "note": "hooks.ex\u0430mple.net"}
    return await asked(wiring, make_ask(ToolDefinition(name="pay_out"), args))


@SCREENS
def test_bar_is_low_whatever_it_says(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(ask_with_versions)), viewport=viewport)
    others = ("Deny…", "…") if has_menu(page) else ("Edit", "Deny…")
    expect_low(page, "Approve EUR 250.00 as requested (1 of 2)", *others)
    page.goto(place_of(site.act(ask_severe)))
    read_to_the_end(page)
    settle(page)
    page.locator(".approval .wide").click()
    expect(page.locator(".armed")).to_be_visible()
    expect_low(page, "Approve EUR 4,890.00", *others)
    page.goto(place_of(site.act(lambda wiring: asked(wiring, make_ask(terms={"secrets": ["note"]})))))
    expect_low(page, "Show the secret values first", "Deny…", *(["…"] if has_menu(page) else []))
    record = site.act(lambda wiring: asked(wiring, ask_value()))
    page.goto(place_of(record))
    expect_low(page, "Send", "Deny…", *(["…"] if has_menu(page) else []))
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.locator(".decide").get_by_text("ben denied this")).to_be_visible()
    expect_low(page, "Next item")


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_buttons_of_a_question_stay_in_place(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    """The second press of a severe call meets the button where the first one did."""
    page = open_as(place_of(site.act(ask_severe)), viewport=viewport)
    read_to_the_end(page)
    settle(page)
    button = page.locator(".approval .wide")
    before = button.bounding_box()
    button.click()
    expect(page.locator(".armed")).to_be_visible()
    assert button.bounding_box() == before


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_decision_without_scripts_stands_after_the_last_value(
    site: Site, open_as: Open, viewport: ViewportSize
) -> None:
    args: JsonObject = {**REFUND_ARGS, **{f"line_{place:02}": "text" for place in range(40)}}
    record = site.act(lambda wiring: asked(wiring, make_ask(args=args)))
    page = open_as(place_of(record), viewport=viewport, java_script_enabled=False)
    approve = page.get_by_role("button", name="Approve EUR 250.00")
    expect(approve).not_to_be_in_viewport()
    last, button = page.locator("#call .read tr").last.bounding_box(), approve.bounding_box()
    why = page.locator("#why").bounding_box()
    assert last is not None
    assert button is not None
    assert why is not None
    assert last["y"] + last["height"] <= button["y"]
    assert button["y"] + button["height"] <= why["y"]
    page.get_by_text("Deny…", exact=True).click()
    expect(page.get_by_label("Reason")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Deny and go on")).to_be_in_viewport()
