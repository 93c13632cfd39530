"""An open inbox changes row by row, and never under the pointer."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, Request, expect

from sayso.core.clock import new_id
from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec, RunRef, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, decide, make_ask

INSERTS = 1000
PLAIN = ToolDefinition(name="refund_payment")


async def ask_many(wiring: Wiring) -> None:
    """Many items of clients, each with a deadline of its own."""
    for place in range(INSERTS):
        run = RunRef(id=new_id("run"), agent="support", owner=f"demo-{place % 10}", thread_id=new_id("thr"))
        call = ExternalCall(ToolCall(call_id="", index=0, name="refund_payment", args={"amount": place}), PLAIN)
        await wiring.desk.suspend(run, [call], ResumeSpec(mode="poll", resumer="poll"))


def test_row_under_the_pointer_stays_through_a_thousand_inserts(site: Site, open_as: Callable[..., Page]) -> None:
    first = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 3000})))
    second = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 3600})))
    page = open_as("/")
    row = page.locator(f"#{second.id}-i1")
    row.hover()
    place = row.bounding_box()
    moved = page.evaluate_handle(
        """id => {
            const row = document.getElementById(id), places = new Set();
            const look = () => { const { x, y } = row.getBoundingClientRect(); places.add(`${x} ${y}`); };
            new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributes: true });
            look();
            return places;
        }""",
        f"{second.id}-i1",
    )
    site.act(ask_many)
    expect(page.locator("#pending")).to_have_text("999+")
    expect(page.locator("#fresh")).to_contain_text("new · Show")
    assert moved.evaluate("places => places.size") == 1
    assert row.bounding_box() == place
    expect(page.locator("#rows li")).to_have_count(2)
    expect(page.locator("#rows li").first).to_have_attribute("id", f"{first.id}-i1")


def test_new_rows_wait_behind_a_button_and_come_by_deadline(site: Site, open_as: Callable[..., Page]) -> None:
    late = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 900})))
    page = open_as("/")
    page.locator(f"#{late.id}-i1").hover()
    soon = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 60})))
    expect(page.locator("#fresh")).to_have_text("1 new · Show")
    expect(page.locator(f"#{soon.id}-i1")).to_have_count(0)
    page.locator("#fresh").click()
    expect(page.locator("#rows li").first).to_have_attribute("id", f"{soon.id}-i1")


def test_row_decided_elsewhere_keeps_its_place_while_the_pointer_is_there(
    site: Site, open_as: Callable[..., Page]
) -> None:
    first, second = site.act(asked), site.act(asked)
    page = open_as("/")
    page.locator(f"#{second.id}-i1").hover()
    place = page.locator(f"#{second.id}-i1").bounding_box()
    site.act(lambda wiring: decide(wiring, first, "deny"))
    gone = page.locator(f"#{first.id}-i1")
    expect(gone).to_contain_text("ben denied this")
    expect(gone.get_by_role("link")).to_have_count(0)
    assert page.locator(f"#{second.id}-i1").bounding_box() == place
    page.mouse.move(0, 0)
    expect(gone).to_have_count(0)


def test_a_change_fetches_its_rows_and_not_the_page(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(asked)
    page = open_as("/me")
    fetched: list[str] = []
    page.goto("/")

    def note(request: Request) -> None:
        path = request.url.removeprefix(site.url)
        if "?quiet=" not in path:  # the item beside the inbox fetches itself whenever it is connected
            fetched.append(path)

    first = site.act(asked)
    expect(page.locator(f"#{first.id}-i1")).to_be_visible()
    page.on("request", note)
    record = site.act(asked)
    expect(page.locator(f"#{record.id}-i1")).to_be_visible()
    assert {one.partition("=")[0] for one in fetched} == {"/rows?ids"}


def test_lost_connection_is_said_until_it_is_back(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/")
    expect(page.get_by_role("img", name="Live")).to_be_visible()  # or its own connection opens after the event below
    page.clock.install()
    page.evaluate("document.dispatchEvent(new Event('disconnected'))")
    page.clock.run_for(6000)
    expect(page.locator("#offline")).to_contain_text("Not connected since")
    page.evaluate("document.dispatchEvent(new Event('connected'))")
    expect(page.locator("#offline")).to_be_hidden()


def test_new_rows_fit_the_search(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(asked)
    page = open_as("/?q=tool:refund")
    other = site.act(lambda wiring: asked(wiring, ask_value()))
    fitting = site.act(asked)
    expect(page.locator(f"#{fitting.id}-i1")).to_be_visible()
    expect(page.locator(f"#{other.id}-i1")).to_have_count(0)


def test_row_that_became_alike_to_others_is_shown_beside_theirs(site: Site, open_as: Callable[..., Page]) -> None:
    for _ in range(2):
        site.act(asked)
    page = open_as("/", viewport={"width": 1024, "height": 768})
    page.route(re.compile(r"/live(\?|$)"), lambda route: route.abort())
    page.reload()
    third = site.act(asked)  # the page that is fetched now has one row for all three
    page.evaluate("document.dispatchEvent(new Event('refresh'))")
    expect(page.locator(f"#{third.id}-i1")).to_be_visible()
    expect(page.locator("#rows .several")).to_have_count(0)


def test_focus_stays_on_a_row_that_was_decided_elsewhere(site: Site, open_as: Callable[..., Page]) -> None:
    first = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 900})))
    second = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 901})))
    page = open_as("/", viewport={"width": 1024, "height": 768})
    third = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 902})))
    expect(page.locator(f"#{third.id}-i1")).to_be_visible()  # the page is no longer fetched whole
    page.keyboard.press("j")
    site.act(lambda wiring: decide(wiring, first, "deny"))
    expect(page.locator(f"#{first.id}-i1")).to_contain_text("ben denied this")
    expect(page.locator(f"#{first.id}-i1")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(f"#{second.id}-i1 a")).to_be_focused()


def test_days_are_those_of_the_browser(site: Site, open_as: Callable[..., Page]) -> None:
    async def ask_through_two_days(wiring: Wiring) -> list[SuspensionRecord]:
        hours = (1, 13, 25, 37)
        return [await asked(wiring, make_ask(terms={"timeout_s": 3600 * one}), agent=f"agent-{one}") for one in hours]

    records = site.act(ask_through_two_days)
    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        page = open_as("/", timezone_id=zone)
        for record in records:
            row = page.locator(f"#{record.id}-i1")
            today = row.evaluate(
                "row => new Date(Number(row.dataset.due)).toDateString() === new Date().toDateString()"
            )
            expect(page.locator(f"[data-section={'today' if today else 'later'}] #{record.id}-i1")).to_be_visible()


def test_row_with_flags_on_a_phone_cuts_no_quorum(site: Site, open_as: Callable[..., Page]) -> None:
    args = {**REFUND_ARGS, "order_id": "A\u202e-1932", "note": "hooks.ex\u0430mple.net"}
    ask = make_ask(args=args, resembles=("refund-payment",), terms={"quorum": {"approve": 2}})
    record = site.act(lambda wiring: asked(wiring, ask))
    page = open_as("/", viewport=PHONE)
    row = page.locator(f"#{record.id}-i1")
    expect(row.locator(".flag")).to_have_count(2)
    quorum, flags = row.locator(".quorum"), row.locator(".flags")
    expect(quorum).to_have_text("0 of 2")
    assert quorum.evaluate("node => node.scrollWidth <= node.clientWidth")
    left, right = quorum.bounding_box(), flags.bounding_box()
    assert left is not None
    assert right is not None
    assert right["x"] + right["width"] <= left["x"]


def test_item_for_others_comes_folded(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(asked)
    page = open_as("/")
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"reviewers": ["ben"]})))
    expect(page.get_by_text("For others (1)")).to_be_visible()
    expect(page.locator(f"#{record.id}-i1")).to_be_hidden()
    page.get_by_text("For others (1)").click()
    expect(page.locator(f"#{record.id}-i1")).to_contain_text("Only ben can decide this.")
