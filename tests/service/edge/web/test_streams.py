"""One stream of events for all tabs of a browser, in a real browser."""

import os
import signal
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, decide, make_ask, place_of

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
WITHOUT_LOCKS = "Object.defineProperty(navigator, 'locks', { value: undefined })"
LIVE = "#dot[data-state=live]"


class Streams:
    """The streams that a browser has open."""

    def __init__(self, context: BrowserContext) -> None:
        self._begun: set[Request] = set()
        context.on("request", lambda one: self._begun.add(one) if one.resource_type == "eventsource" else None)
        for end in ("requestfinished", "requestfailed"):
            context.on(end, lambda one: self._begun.discard(one))  # noqa: PLW0108 - the driver sets attributes

    @property
    def open(self) -> list[str]:
        """Their addresses, without those of closed tabs."""
        return [one.url for one in self._begun if not one.frame.page.is_closed()]


def ask_apart(site: Site, count: int) -> list[SuspensionRecord]:
    """Items of runs of their own, of different agents, so that none is in a group of alike items."""
    asks = [make_ask(terms={"timeout_s": 900 + place}) for place in range(count)]
    return [site.act(partial(asked_by, ask, f"bot-{place}")) for place, ask in enumerate(asks)]


async def asked_by(ask: ItemDraft, agent: str, wiring: Wiring) -> SuspensionRecord:
    return await asked(wiring, ask, agent=agent)


def open_another(page: Page, place: str) -> Page:
    other = page.context.new_page()
    other.goto(place)
    return other


def process_of(page: Page) -> int:
    """Return the process that runs a page's scripts: the one that is busy while the page is."""
    browser = page.context.browser
    assert browser is not None
    session = browser.new_browser_cdp_session()

    def read() -> dict[int, float]:
        found = session.send("SystemInfo.getProcessInfo")["processInfo"]
        return {one["id"]: one["cpuTime"] for one in found if one["type"] == "renderer"}

    before = read()
    page.evaluate("for (const end = performance.now() + 500; performance.now() < end;);")
    return max(read().items(), key=lambda one: one[1] - before.get(one[0], 0))[0]


def expect_one(page: Page, streams: Streams) -> None:
    """Wait until a stream that was joined by another one is closed."""
    for _ in range(100):
        if len(streams.open) == 1:
            return
        page.evaluate("new Promise((resume) => setTimeout(resume, 50))")
    raise AssertionError(streams.open)


def test_twenty_windows_share_a_stream_and_answer_each_press(site: Site, open_as: Open) -> None:
    records = ask_apart(site, 8)
    first = open_as("/operate")
    streams = Streams(first.context)
    first.goto("/")
    inboxes = [first, *(open_another(first, "/") for _ in range(15))]
    items = [open_another(first, place_of(record)) for record in records[:4]]
    for page in [*inboxes, *items]:
        expect(page.locator(LIVE)).to_have_count(1)
    expect_one(first, streams)
    site.act(lambda wiring: decide(wiring, records[7], "deny"))
    for page in inboxes:
        expect(page.locator("#pending")).to_have_text("7")
    for place in range(4):
        site.act(partial(asked_by, make_ask(), f"late-{place}"))
    for page in inboxes:
        expect(page.locator("#pending")).to_have_text("11")
    for page, record in zip(items, records[:4], strict=True):
        page.get_by_role("button", name="Approve EUR 250.00").click()
        expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
        assert record.id in page.url
    for page in inboxes:
        expect(page.locator("#pending")).to_have_text("7")
    expect_one(first, streams)


@pytest.mark.parametrize("joining", [1, 2])
def test_a_change_while_streams_are_replaced_reaches_the_inbox(site: Site, open_as: Open, joining: int) -> None:
    first, second, *wanted = ask_apart(site, 2 + joining)
    inbox = open_as("/")
    expect(inbox.locator(LIVE)).to_have_count(1)
    other = open_another(inbox, "/runs")
    expect(other.locator(LIVE)).to_have_count(1)
    site.act(lambda wiring: decide(wiring, first, "approve"))
    site.act(lambda wiring: decide(wiring, second, "approve"))  # the stream rests after the event of the first
    other.evaluate(
        "runs => runs.forEach((run) => new BroadcastChannel("
        "`sayso stream ${document.querySelector('.who').textContent}`)"
        ".postMessage({ kind: 'want', from: run, data: run }))",
        [record.run.id for record in wanted],
    )
    for record in (first, second):
        expect(inbox.locator(f"[id='{record.id}-i1']:not(.gone)")).to_have_count(0)
    expect(inbox.locator("#rows li:not(.gone)")).to_have_count(joining)


def test_an_item_in_another_tab_is_updated_through_the_shared_stream(site: Site, open_as: Open) -> None:
    first, second = ask_apart(site, 2)
    inbox = open_as("/runs")
    items = [open_another(inbox, place_of(record)) for record in (first, second)]
    for page in items:
        expect(page.locator(LIVE)).to_have_count(1)
    site.act(lambda wiring: decide(wiring, second, "approve"))
    expect(items[1].get_by_role("heading", name="ben approved this")).to_be_visible()
    expect(items[0].get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
    site.act(lambda wiring: decide(wiring, first, "approve"))
    expect(items[0].get_by_role("heading", name="ben approved this")).to_be_visible()


@pytest.mark.parametrize("end", ["closed", "hidden", "frozen", "crashed"])
def test_another_tab_takes_the_stream_over(site: Site, open_as: Open, end: str) -> None:
    leader = open_as("/runs")
    streams = Streams(leader.context)
    leader.reload()
    expect(leader.locator(LIVE)).to_have_count(1)
    process = process_of(leader)
    follower = open_another(leader, "/")
    expect(follower.locator(LIVE)).to_have_count(1)
    with leader.context.expect_event("request", lambda one: one.resource_type == "eventsource") as taken:
        if end == "closed":
            leader.close()
        elif end == "hidden":
            leader.evaluate(
                "Object.defineProperty(document, 'hidden', { get: () => true });"
                "document.dispatchEvent(new Event('visibilitychange'))"
            )
        elif end == "frozen":
            leader.evaluate("document.dispatchEvent(new Event('freeze'))")
        else:
            os.kill(process, signal.SIGKILL)
    assert taken.value.frame.page == follower
    site.act(asked)
    expect(follower.locator("#pending")).to_have_text("1")
    if end != "crashed":  # the browser reports no end of the requests of a page that crashed
        expect_one(follower, streams)


@pytest.mark.parametrize("stop", ["muted", "stopped"])
def test_a_silent_leader_loses_the_stream(site: Site, open_as: Open, stop: str) -> None:
    leader = open_as("/runs")
    expect(leader.locator(LIVE)).to_have_count(1)
    process = process_of(leader)
    follower = open_another(leader, "/")
    expect(follower.locator(LIVE)).to_have_count(1)
    if stop == "muted":
        leader.evaluate("BroadcastChannel.prototype.postMessage = () => {}")
    else:
        os.kill(process, signal.SIGSTOP)
    try:
        with follower.expect_request("**/live*"):
            follower.evaluate("const now = Date.now; Date.now = () => now() + 20_000")
        site.act(asked)
        expect(follower.locator("#pending")).to_have_text("1")
    finally:
        os.kill(process, signal.SIGCONT)


def test_pages_without_locks_ask_again(site: Site, open_as: Open) -> None:
    page = open_as("/sign-out")
    page.add_init_script(WITHOUT_LOCKS)
    page.clock.install()
    streams = Streams(page.context)
    page.goto("/")
    expect(page.locator(LIVE)).to_have_count(1)
    record = site.act(asked)
    page.clock.run_for(6_000)
    expect(page.locator("#pending")).to_have_text("1")
    expect(page.locator(f"[id='{record.id}-i1']")).to_be_visible()
    assert streams.open == []
