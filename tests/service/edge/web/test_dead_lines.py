"""What pages say of a line that is dead, and what becomes of a press then: in a real browser, through a proxy."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, place_of

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
LIVE = "#dot[data-state=live]"
STALE = "#dot[data-state=stale]"
WITHOUT_LOCKS = "Object.defineProperty(navigator, 'locks', { value: undefined })"
LATER = "const now = Date.now; Date.now = () => now() + 16_000"


@dataclass
class Proxy:
    """A proxy to a port that can swallow all bytes of its connections, which stay open: a half-open line.

    Connections from a time when it swallowed stay dead.
    """

    port: int
    url: str = ""
    swallows: bool = False
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    async def serve(self) -> None:
        server = await asyncio.start_server(self._take, "127.0.0.1")
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, back = await asyncio.open_connection("127.0.0.1", self.port)
        alive = [True]
        await asyncio.gather(self._pass(reader, back, alive), self._pass(onward, writer, alive))

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, alive: list[bool]) -> None:
        with suppress(OSError), closing(target):
            while data := await source.read(65_536):
                alive[0] = alive[0] and not self.swallows
                if alive[0]:
                    target.write(data)
                    await target.drain()


@pytest.fixture
def proxy(site: Site) -> Iterator[Proxy]:
    port = urlsplit(site.url).port
    assert port is not None
    proxy = Proxy(port)
    thread = threading.Thread(target=proxy.loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(proxy.serve(), proxy.loop).result(10)
    yield proxy
    proxy.loop.call_soon_threadsafe(proxy.loop.stop)
    thread.join(10)


def begin_denial(page: Page) -> None:
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("Half a reason")


def deny(page: Page) -> None:
    page.get_by_role("button", name="Deny", exact=False).last.click()


def count_decisions(site: Site, record: SuspensionRecord) -> int:
    async def read(wiring: Wiring) -> int:
        found = (await wiring.desk.suspensions.read(record.id)).record
        assert found is not None
        return len(found.items[0].decisions)

    return site.act(read)


@SIZES
def test_press_on_a_half_open_line_is_sent_by_another_alone(
    site: Site, open_as: Open, proxy: Proxy, viewport: ViewportSize
) -> None:
    record = site.act(asked)
    page = open_as(f"{proxy.url}{place_of(record)}", viewport=viewport)
    expect(page.locator(LIVE)).to_have_count(1)
    begin_denial(page)
    proxy.swallows = True
    deny(page)
    expect(page.locator("#notice")).to_contain_text("Not sent: there is no connection to Sayso.", timeout=20_000)
    expect(page.get_by_label("Reason")).to_have_value("Half a reason")
    page.evaluate(LATER)
    expect(page.locator(STALE)).to_have_count(1)
    expect(page.locator("#offline")).to_contain_text("Not connected since")
    proxy.swallows = False
    page.evaluate(LATER)  # the page asks for a stream anew
    expect(page.locator(LIVE)).to_have_count(1)
    expect(page.locator("#offline")).to_be_hidden()
    expect(page.get_by_label("Reason")).to_have_value("Half a reason")
    assert count_decisions(site, record) == 0
    deny(page)
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
    assert count_decisions(site, record) == 1


@pytest.mark.parametrize("place", ["/", "/runs"])
def test_page_that_polls_says_that_its_line_is_dead(site: Site, open_as: Open, proxy: Proxy, place: str) -> None:
    page = open_as("/sign-out")
    page.add_init_script(WITHOUT_LOCKS)
    page.goto(f"{proxy.url}{place}")
    expect(page.locator(LIVE)).to_have_count(1)
    proxy.swallows = True
    page.evaluate(LATER)
    expect(page.locator(STALE)).to_have_count(1)
    expect(page.locator("#offline")).to_contain_text("Not connected since")


def test_page_that_was_hidden_is_live_only_once_it_hears(site: Site, open_as: Open, proxy: Proxy) -> None:
    page = open_as(f"{proxy.url}/runs")
    expect(page.locator(LIVE)).to_have_count(1)
    hide(page, True)
    proxy.swallows = True
    hide(page, False)
    expect(page.locator("#dot")).to_have_attribute("data-state", "connecting")
    page.evaluate(LATER)
    expect(page.locator(STALE)).to_have_count(1)


def hide(page: Page, hidden: bool) -> None:
    page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def test_a_silent_line_is_not_shown_as_live(site: Site, open_as: Open) -> None:
    page = open_as("/sign-out")
    page.clock.install()
    page.route("**/live*", swallow)
    page.goto("/")
    page.clock.run_for(20_000)
    expect(page.locator("#dot")).to_have_attribute("data-state", "stale")
    expect(page.locator("#dot")).to_have_attribute("aria-label", "Not connected")
    expect(page.locator("#offline")).to_contain_text("Not connected since")


def swallow(route: Route) -> None:
    """Leave a request without an answer."""
    del route


NOTE_STATES = """() => {
  const dot = document.getElementById("dot");
  window.states = [];
  new MutationObserver(() => window.states.push(dot.dataset.state)).observe(dot, { attributes: true });
}"""


def test_a_lost_network_is_said_at_once(site: Site, open_as: Open) -> None:
    page = open_as("/")
    expect(page.locator(LIVE)).to_have_count(1)
    page.evaluate(NOTE_STATES)  # the browser's open line goes on for a while, and its next event makes the page live
    page.context.set_offline(True)
    page.wait_for_function("window.states.includes('stale')")
    expect(page.locator("#offline")).to_contain_text("Not connected since")
    page.context.set_offline(False)
    expect(page.locator(LIVE)).to_have_count(1)
    expect(page.locator("#offline")).to_be_hidden()


def test_a_press_without_a_line_keeps_the_page_and_the_text(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    expect(page.locator(LIVE)).to_have_count(1)
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("Half a reason")
    page.context.set_offline(True)
    page.get_by_role("button", name="Deny", exact=False).last.click()
    expect(page.locator("#notice")).to_contain_text("Not sent: there is no connection to Sayso.")
    expect(page.get_by_label("Reason")).to_have_value("Half a reason")
    page.context.set_offline(False)
    page.get_by_role("button", name="Deny", exact=False).last.click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()


@SIZES
def test_a_link_does_not_take_away_a_press_that_is_on_its_way(
    site: Site, open_as: Open, viewport: ViewportSize
) -> None:
    record = site.act(asked)
    page = open_as(place_of(record), viewport=viewport)
    settle(page)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/healthz", hold)
    with page.expect_request("**/healthz"):
        page.get_by_role("button", name="Approve").first.click()
    page.locator(".crumb a").click()
    held[0].continue_()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
