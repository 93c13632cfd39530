"""No key is dropped: those that come before the next item stands wait for it, in a real browser. Enter never waits."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, Route, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.reading import read_to_the_end, settle
from tests.service.edge.web.sites import Site, settings_for
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, make_ask, place_of

pytestmark = pytest.mark.browser

WIDE: ViewportSize = {"width": 1440, "height": 900}
RULES = """\
version: 1
default: request_approval
rules:
  - {id: refunds-over-100, tool: refund_payment, action: request_approval, grants: {longest: 1d, count: 10}}
"""
ALONE = pytest.mark.parametrize("viewport", [PHONE, {"width": 1024, "height": 768}], ids=["phone", "tablet"])

Open = Callable[..., Page]


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, RULES)


async def ask_two(wiring: Wiring) -> list[SuspensionRecord]:
    """Two items that fit a screen, of different agents, so that they are not alike."""
    return [
        await asked(
            wiring,
            make_ask(args={"amount": 101 + place, "currency": "EUR"}, terms={"timeout_s": 900 + place}),
            agent=f"support-{place}",
        )
        for place in range(2)
    ]


def verdict_of(site: Site, record: SuspensionRecord) -> str:
    async def read(wiring: Wiring) -> str:
        (item,) = (await wiring.desk.suspensions.read(record.id)).record.items
        return item.outcome.verdict if item.outcome else "open"

    return site.act(read)


class Gate:
    """Presses a key, and holds the requests that it makes back until they are let through."""

    def __init__(self, page: Page, key: str, pattern: str, method: str = "GET") -> None:
        self.held: list[Route] = []
        self.method, self.is_open = method, False
        page.route(pattern, self.hold)
        with page.expect_request(pattern, timeout=10_000):
            page.keyboard.press(key)

    def hold(self, route: Route) -> None:
        if self.is_open or route.request.method != self.method:
            route.continue_()
        else:
            self.held.append(route)

    def open(self) -> None:
        self.is_open = True
        for route in self.held:
            route.continue_()


def pane_of(page: Page) -> FrameLocator:
    return page.frame_locator(".pane iframe")


@ALONE
def test_keys_wait_for_the_next_item_alone(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    first, second = site.act(ask_two)
    page = open_as(place_of(first), viewport=viewport)
    read_to_the_end(page)
    settle(page)
    gate = Gate(page, "n", "**/next?**")
    for key in ("a", "Enter"):
        page.keyboard.press(key)
    gate.open()
    expect(page).to_have_url(site.url + place_of(second))
    expect(page.locator(".armed")).to_contain_text("EUR 102.00")
    assert [verdict_of(site, record) for record in (first, second)] == ["open", "open"]
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    assert [verdict_of(site, record) for record in (first, second)] == ["open", "approved"]


def test_keys_after_a_decision_wait_for_the_item_they_name(site: Site, open_as: Open) -> None:
    """The keys n and a, pressed while an approval is under way, arm the next item and not the approved one."""
    first, second = site.act(ask_two)
    page = open_as(place_of(first), viewport=PHONE)
    read_to_the_end(page)
    page.keyboard.press("a")
    expect(page.locator(".armed")).to_be_visible()
    gate = Gate(page, "Enter", f"**{place_of(first)}", "POST")
    for key in ("n", "a", "Enter"):
        page.keyboard.press(key)
    gate.open()
    expect(page).to_have_url(site.url + place_of(second))
    expect(page.locator(".armed")).to_contain_text("EUR 102.00")
    assert [verdict_of(site, record) for record in (first, second)] == ["approved", "open"]


def test_key_waits_for_the_item_beside_the_inbox(site: Site, open_as: Open) -> None:
    first, second = site.act(ask_two)
    page = open_as("/", viewport=WIDE)
    expect(pane_of(page).get_by_role("button", name="Approve EUR 101.00")).to_be_enabled()
    page.keyboard.press("a")
    expect(pane_of(page).locator(".armed")).to_be_visible()
    gate = Gate(page, "Enter", f"**{place_of(second)}?**")
    for key in ("a", "Enter"):
        page.keyboard.press(key)
    assert verdict_of(site, first) == "approved"
    gate.open()
    expect(pane_of(page).locator(".armed")).to_contain_text("EUR 102.00")
    assert verdict_of(site, second) == "open"
    page.keyboard.press("Enter")
    expect(pane_of(page).get_by_role("heading", name="anna approved this")).to_be_visible()
    assert verdict_of(site, second) == "approved"


def test_keys_during_a_decision_reach_only_the_next_item(site: Site, open_as: Open) -> None:
    first, second = site.act(ask_two)
    page = open_as("/", viewport=WIDE)
    expect(pane_of(page).get_by_role("button", name="Approve EUR 101.00")).to_be_enabled()
    page.keyboard.press("a")
    expect(pane_of(page).locator(".armed")).to_be_visible()
    gate = Gate(page, "Enter", f"**{place_of(first)}", "POST")
    for key in ("n", "a", "Enter"):
        page.keyboard.press(key)
    gate.open()
    expect(pane_of(page).locator(".armed")).to_contain_text("EUR 102.00")
    expect(page.locator(".latest")).to_have_text("Refund payment EUR 101.00: anna approved this")
    assert [verdict_of(site, record) for record in (first, second)] == ["approved", "open"]


def test_key_for_another_item_is_forgotten(site: Site, open_as: Open) -> None:
    first, second = site.act(ask_two)
    page = open_as("/", viewport=WIDE)
    expect(pane_of(page).get_by_role("button", name="Approve EUR 101.00")).to_be_enabled()
    gate = Gate(page, "j", f"**{place_of(second)}**")
    for key in ("a", "k"):
        page.keyboard.press(key)
    gate.open()
    expect(page.locator(".pane iframe:not([aria-busy])")).to_have_count(1)
    expect(pane_of(page).get_by_role("button", name="Approve EUR 101.00")).to_be_enabled()
    expect(pane_of(page).locator(".armed")).to_have_count(0)
    assert [verdict_of(site, record) for record in (first, second)] == ["open", "open"]


def test_key_within_the_guard_counts_and_a_press_does_not(site: Site, open_as: Open) -> None:
    """The guard of 400 ms after a change of the bar is for pointers: its clock stands still here."""
    page = open_as("/history")
    page.clock.install()
    page.goto(place_of(site.act(ask_two)[0]))
    approve = page.get_by_role("button", name="Approve EUR 101.00")
    expect(approve).to_be_enabled()
    page.keyboard.press("d")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    page.keyboard.press("Escape")
    expect(approve).to_be_visible()
    expect(page.locator(".decide")).to_have_attribute("aria-disabled", "true")
    approve.dispatch_event("click", {"detail": 1})
    expect(page.locator(".decide")).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("a")
    expect(page.locator(".armed")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


async def ask_all(wiring: Wiring) -> SuspensionRecord:
    """A call that can be approved, edited, denied, granted, answered with an offer, and extended."""
    draft = make_ask(terms={"timeout_s": 9000, "extend_by_s": 9000})
    return await asked(wiring, draft.model_copy(update={"rule_version": wiring.rules.policy().version}))


@ALONE
def test_every_action_of_an_item_has_a_key(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(ask_all)), viewport=viewport)
    settle(page)
    for key, field in (("d", "#message"), ("Shift+G", "#span"), ("Shift+O", "#offer-1")):
        page.keyboard.press(key)
        expect(page.locator(field)).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
    for key, field in (("q", "#inquiry"), ("m", "#comment"), ("t", "#until"), ("Shift+F", "input[type=file]")):
        page.keyboard.press(key)
        expect(page.locator(field).first).to_be_focused()
        page.locator("h1").click()
    page.keyboard.press("z")
    expect(page.locator("details.folded:not([open])")).to_have_count(0)
    page.keyboard.press("z")
    expect(page.locator("details.folded[open]")).to_have_count(0)
    for key, view in (("2", "tree"), ("3", "json"), ("1", "read")):
        page.keyboard.press(key)
        expect(page.locator(f"#view-{view}")).to_be_checked()
    page.keyboard.press("e")
    expect(page.locator("#edit :focus")).to_have_count(1)


def test_secret_values_are_shown_by_key(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, make_ask(terms={"secrets": ["note"]})))))
    settle(page)
    page.keyboard.press("s")
    expect(page.locator("#call")).to_contain_text("Sorry for the broken cup.")


async def ask_alike(wiring: Wiring) -> list[SuspensionRecord]:
    amounts = (120, 121, 122)
    return [await asked(wiring, make_ask(args={**REFUND_ARGS, "amount": amount})) for amount in amounts]


@ALONE
def test_rows_of_a_batch_are_ticked_by_keys(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    records = site.act(ask_alike)
    page = open_as(f"/batch/{records[0].id}-i1", viewport=viewport)
    settle(page)
    for key in ("j", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_label("Decide row 2")).not_to_be_checked()
    page.keyboard.press("d")
    expect(page.get_by_label("Reason")).to_be_visible()


def test_only_field_sends_by_enter_once_all_was_shown(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, ask_value()))
    page = open_as(place_of(record), viewport=PHONE)
    settle(page)
    page.keyboard.press("v")
    page.keyboard.type("HH-7731")
    page.keyboard.press("Enter")
    assert verdict_of(site, record) == "open", "a value was not yet shown"
    read_to_the_end(page)
    page.keyboard.press("v")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()


def test_search_is_typed_into_before_the_page_was_drawn(site: Site, open_as: Open) -> None:
    page = open_as("/")
    page.add_init_script("window.requestAnimationFrame = () => {}")
    page.goto("/history")
    page.keyboard.press("/")
    page.keyboard.type("amount>7")
    expect(page.get_by_role("searchbox", name="Search history")).to_have_value("amount>7")
