"""Items beside the inbox, in a real browser: what a routine decision costs, and that no guard of the page is lost."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Dialog, FrameLocator, Locator, Page, Request, Route, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import REFUND_ARGS, asked, decide, make_ask, place_of

WIDE: ViewportSize = {"width": 1440, "height": 900}
SHELL = ToolDefinition(name="shell")
LONG = "\n".join(f"echo {place}" for place in range(400))

Open = Callable[..., Page]


async def ask_three(wiring: Wiring) -> list[SuspensionRecord]:
    """Three items of different agents, so that they are not one group of alike items."""
    return [
        await asked(
            wiring,
            make_ask(args={**REFUND_ARGS, "amount": 101 + place}, terms={"timeout_s": 900 + place}),
            agent=f"support-{place}",
        )
        for place in range(3)
    ]


def status_of(site: Site, record: SuspensionRecord) -> str:
    async def read(wiring: Wiring) -> str:
        (item,) = (await wiring.desk.suspensions.read(record.id)).record.items
        return item.outcome.verdict if item.outcome else "open"

    return site.act(read)


def pane_of(page: Page) -> FrameLocator:
    return page.frame_locator(".pane iframe")


def expect_open(page: Page, record: SuspensionRecord) -> None:
    """Wait until the item is in the pane and its buttons take presses."""
    expect(page.locator("#rows li[aria-current]")).to_have_id(f"{record.id}-i1")
    expect(page.locator(".pane iframe:not([aria-busy])")).to_have_count(1)
    expect(pane_of(page).locator(f"a.begin[href^='{place_of(record)}']")).to_have_count(1)
    expect(pane_of(page).locator(".decide[aria-disabled]")).to_have_count(0)


async def test_only_items_may_stand_in_a_frame_of_this_site(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        for place, ancestors, option in ((place_of(record), "'self'", "SAMEORIGIN"), ("/runs", "'none'", "DENY")):
            headers = (await anna.client.get(place)).headers
            assert f"frame-ancestors {ancestors};" in headers["content-security-policy"]
            assert (headers["x-frame-options"], headers["cache-control"]) == (option, "no-store")


async def test_item_that_opens_by_itself_is_not_seen(settings: Settings) -> None:
    async with visit(settings) as anna:
        fallback = {"action": "approve"}
        record = await asked(anna.wiring, make_ask(terms={"fallback": fallback, "unattended_approval": True}))
        for query, seen in (("?quiet=1", False), ("", True)):
            await anna.read(place_of(record) + query)
            (item,) = (await anna.wiring.desk.suspensions.read(record.id)).record.items
            assert (item.seen_by is not None) is seen


class Cost:
    """Counts what a reviewer presses."""

    def __init__(self, page: Page) -> None:
        self.page, self.presses, self.loads = page, 0, 0
        page.on("request", self._count)

    def _count(self, request: Request) -> None:
        self.loads += request.is_navigation_request() and request.frame == self.page.main_frame

    def key(self, key: str) -> None:
        self.presses += 1
        self.page.keyboard.press(key)

    def click(self, target: Locator) -> None:
        self.presses += 1
        target.click()


def test_routine_decisions_cost_what_the_table_says(site: Site, open_as: Open) -> None:
    first, second, third = site.act(ask_three)
    table: list[tuple[str, int, int | None]] = []
    page = open_as("/", viewport=WIDE)
    expect_open(page, first)
    cost = Cost(page)
    cost.key("a")
    cost.key("Enter")
    expect_open(page, second)
    assert status_of(site, first) == "approved"
    table.append(("approve, keyboard from the inbox", cost.presses, cost.loads))
    expect(page.locator(".latest")).to_have_text("Refund payment EUR 101.00: anna approved this")
    expect(pane_of(page).get_by_role("heading", level=1)).to_be_focused()

    cost = Cost(page)
    cost.click(pane_of(page).locator(".approval .wide"))
    expect_open(page, third)
    assert status_of(site, second) == "approved"
    table.append(("approve, mouse", cost.presses, cost.loads))

    cost = Cost(page)
    cost.key("d")
    page.keyboard.type("Too old")
    expect(pane_of(page).locator(".decide[aria-disabled]")).to_have_count(0)
    cost.key("Control+Enter")
    expect(pane_of(page).get_by_role("heading", name="anna denied this")).to_be_visible()
    assert status_of(site, third) == "denied"
    table.append(("deny with reason, keys besides the text", cost.presses, cost.loads))

    fourth = site.act(asked)
    page = open_as("/", viewport=PHONE)
    cost = Cost(page)
    cost.click(page.locator(f"#{fourth.id}-i1 a"))
    expect(page).to_have_url(site.url + place_of(fourth))
    page.wait_for_load_state()
    expect(page.locator(".decide[aria-disabled]")).to_have_count(0)
    cost.click(page.locator(".approval .wide"))
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    table.append(("approve, phone", cost.presses, None))

    for job, presses, loads in table:
        print(f"{job:42} {presses} presses, {'-' if loads is None else loads} page loads")
    assert [presses for _, presses, _ in table] == [2, 1, 2, 2]
    assert [loads for _, _, loads in table] == [0, 0, 0, None]


def test_keys_move_through_the_items(site: Site, open_as: Open) -> None:
    first, second, third = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    expect_open(page, first)
    page.keyboard.press("j")
    expect_open(page, second)
    expect(page.locator(f"#{second.id}-i1 a")).to_be_focused()
    expect(page).to_have_url(f"{site.url}/?at={second.id}-i1")
    page.keyboard.press("ArrowDown")
    expect_open(page, third)
    page.keyboard.press("p")
    expect_open(page, second)
    expect(pane_of(page).get_by_role("heading", level=1)).to_be_focused()
    page.keyboard.press("k")
    expect_open(page, first)
    page.keyboard.press("Enter")
    expect(pane_of(page).get_by_role("heading", level=1)).to_be_focused()
    page.keyboard.press("n")
    expect_open(page, second)
    page.keyboard.press("u")
    expect(page.locator(f"#{second.id}-i1 a")).to_be_focused()
    page.reload()
    expect_open(page, second)
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    for words in ("Next row", "Approve: Enter sends", "Previous item"):
        expect(sheet.get_by_text(words)).to_be_visible()
    results = Axe().run(page.frames[-1], options={"resultTypes": ["violations"]})
    assert results.response["violations"] == []


def test_nothing_is_sent_while_another_item_loads(site: Site, open_as: Open) -> None:
    first, second, _ = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    expect_open(page, first)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(f"**{place_of(second)}*", hold)
    page.keyboard.press("j")
    expect(page.locator(".pane iframe[aria-busy]")).to_have_count(1)
    for key in ("a", "Enter", "d", "n"):
        page.keyboard.press(key)
    expect(pane_of(page).locator(".armed, .decide [open]")).to_have_count(0)
    expect(pane_of(page).locator(".approval .wide")).to_be_visible()  # still the first item, which takes no press
    assert page.locator(".pane iframe").evaluate("frame => frame.inert")
    held[0].continue_()
    expect(page.locator(".pane iframe[aria-busy]")).to_have_count(0)
    assert [status_of(site, record) for record in (first, second)] == ["open", "open"]


def test_long_text_is_shown_before_approval(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(SHELL, {"command": LONG})))
    page = open_as("/", viewport=WIDE)
    expect_open(page, record)
    approve = pane_of(page).locator(".approval .wide")
    expect(approve).to_have_text("Approve · 1 text not yet shown")
    for key in ("a", "Enter"):
        page.keyboard.press(key)
    expect(pane_of(page).locator(".armed")).to_have_count(0)
    expect(pane_of(page).locator(".what :focus")).to_have_count(1)
    while approve.get_attribute("aria-disabled"):
        page.keyboard.press("]")
    expect(pane_of(page).locator(".decide[aria-disabled]")).to_have_count(0)
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(pane_of(page).get_by_role("heading", name="anna approved this")).to_be_visible()


def test_decision_elsewhere_takes_the_buttons_away(site: Site, open_as: Open) -> None:
    first, second, _ = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    expect_open(page, first)
    pane_of(page).get_by_text("Deny…", exact=True).click()
    pane_of(page).get_by_label("Reason").fill("I am still typ")
    site.act(lambda wiring: decide(wiring, first, "approve"))
    expect(pane_of(page).get_by_label("Your input")).to_have_value("I am still typ")
    expect(pane_of(page).locator(".decide form")).to_have_count(0)
    pane_of(page).get_by_role("link", name="Next item").click()
    expect_open(page, second)


def test_begun_edit_is_not_left_by_accident(site: Site, open_as: Open) -> None:
    first, second, _ = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    expect_open(page, first)
    page.keyboard.press("e")
    pane_of(page).get_by_label("amount").fill("7")
    questions: list[str] = []

    def refuse(dialog: Dialog) -> None:
        questions.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", refuse)
    page.locator(f"#{second.id}-i1 a").click()
    assert questions == ["Discard your input?"]
    expect(pane_of(page).get_by_label("amount")).to_have_value("7")
    expect(pane_of(page).locator(".approval")).to_have_count(0)
    page.set_viewport_size({"width": 1000, "height": 800})  # as a browser that is zoomed in
    expect(pane_of(page).get_by_label("amount")).to_have_value("7")
    expect(page.locator("#rows")).to_be_hidden()
    page.set_viewport_size(WIDE)
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator(f"#{second.id}-i1 a").click()
    expect_open(page, second)


def test_other_pages_open_in_the_window(site: Site, open_as: Open) -> None:
    first, *_ = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    expect_open(page, first)
    pane_of(page).locator(".head").get_by_role("link", name="support-0").click()
    expect(page).to_have_url(f"{site.url}/runs/{first.run.id}")


def test_ended_session_shows_the_sign_in(site: Site, open_as: Open) -> None:
    first, *_ = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    expect_open(page, first)
    page.context.clear_cookies()
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["narrow", "without scripts"])
def test_row_is_a_link_to_the_page(site: Site, open_as: Open, scripts: bool) -> None:
    record = site.act(asked)
    page = open_as("/", viewport={"width": 1100, "height": 800} if scripts else WIDE, java_script_enabled=scripts)
    page.locator(f"#{record.id}-i1 a").click()
    expect(page).to_have_url(site.url + place_of(record))
