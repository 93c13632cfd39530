"""The first view of the inbox in Chromium: how much it loads, and that it loads nothing twice."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Request, Route, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from service.edge.http.assets import BUNDLES, STATIC
from tests.browser import PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND_ARGS, asked, make_ask, place_of
from tests.service.edge.web.test_rows import PLAIN

LAPTOP: ViewportSize = {"width": 1440, "height": 900}
MOST_REQUESTS, MOST_BYTES = 12, 60_000
Open = Callable[..., Page]


async def fill_inbox(wiring: Wiring) -> None:
    """Fifty items that differ, so that none share a row."""
    for place in range(50):
        args: JsonObject = REFUND_ARGS | {"order_id": f"A-{place}", "amount": place * 7 + 1}
        definition = ToolDefinition(name=f"refund_{place % 7}", description=PLAIN.description)
        await asked(wiring, make_ask(definition, args, terms={"timeout_s": 3_000 + place}), agent=f"support-{place}")


class Loads:
    """The requests of a page, and the bytes of their bodies and headers as they were sent."""

    def __init__(self, page: Page) -> None:
        self.paths: list[str] = []
        self.addresses: list[str] = []
        self._requests: list[Request] = []
        page.on("request", self._note)

    def _note(self, request: Request) -> None:
        self._requests.append(request)
        self.addresses.append(request.url)
        self.paths.append(request.url.partition("//")[2].partition("/")[2].partition("?")[0])

    def weigh(self) -> int:
        sizes = [one.sizes() for one in self._requests if "/live" not in one.url and one.response() is not None]
        return sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_first_view_is_light_and_nothing_is_fetched_again(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    site.act(fill_inbox)
    page = open_as("/static/none", viewport=viewport)  # a session, and nothing of the inbox in the cache
    loads = Loads(page)
    page.goto("/")
    expect(page.get_by_role("img", name="Live")).to_be_visible()
    expect(page.locator("#rows .item")).to_have_count(50)
    if viewport is LAPTOP:
        expect(page.locator(".pane iframe:not([aria-busy])")).to_have_count(1)
        expect(page.frame_locator(".pane iframe").locator("h1")).to_be_visible()
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"timeout_s": 60})))
    expect(page.locator(f"#{record.id}-i1")).to_be_visible()  # the stream has sent its first events
    first = loads.paths[: loads.paths.index("rows")]
    sent = set(loads.addresses[: len(first)])  # the item beside the list takes what both need from the cache
    assert len(sent) <= MOST_REQUESTS, sent
    assert first.count("") == 1, "the inbox was fetched again"
    assert sum(path.startswith("items/") and not path.endswith("/here") for path in first) <= 1, first
    assert loads.weigh() <= MOST_BYTES


def test_item_is_not_fetched_again_unless_it_changed(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as("/static/none")
    loads = Loads(page)
    page.goto(place_of(record))
    expect(page.get_by_role("img", name="Live")).to_be_visible()
    site.act(asked)  # another item changes the count alone
    expect(page.locator("#pending")).to_have_text("2")
    assert loads.paths.count(place_of(record)[1:]) == 1


def test_page_that_changed_before_its_stream_began_is_fetched_again(site: Site, open_as: Open) -> None:
    site.act(asked)
    page = open_as("/static/none")
    held: list[Route] = []
    page.route("**/live*", lambda route: held.append(route))  # noqa: PLW0108 - Playwright takes no built-in method
    page.goto("/")
    expect(page.locator("#rows .item")).to_have_count(1)
    second = site.act(asked)
    held[0].continue_()
    expect(page.locator(f"#{second.id}-i1")).to_be_visible()


@pytest.mark.parametrize("name", BUNDLES)
def test_bundle_holds_each_script_once(name: str) -> None:
    assert len(set(BUNDLES[name])) == len(BUNDLES[name])
    assert all((STATIC / f"{script}.js").exists() for script in BUNDLES[name])
    assert not (STATIC / name).exists(), "a bundle hides the file with its name"
