"""Give the tests of the pages a site over an empty store."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from service.settings import Settings
from tests.browser import DESKTOP, running_browser
from tests.service.web.sites import Site, serve, settings_for


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings over a store with nothing in it."""
    return settings_for(clean_store_url, tmp_path)


@pytest.fixture
def closed_store_url(tmp_path: Path) -> str:
    """The URL of a store where nobody listens."""
    return f"unix://{tmp_path}/nobody.sock"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def site(settings: Settings) -> Iterator[Site]:
    with serve(settings) as site:
        yield site


@pytest.fixture
def open_as(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Open a page of a signed-in reviewer; a message on the browser's console fails the test.

    Errors of requests are none, nor is a page that may not stand in a frame, such as the sign-in.
    """
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(place: str = "/", name: str = "anna", **options: Any) -> Page:
        context = browser.new_context(base_url=site.url, **{"viewport": DESKTOP, **options})
        contexts.append(context)
        context.add_cookies([{"name": "sayso_session_8321", "value": site.token_of(name), "url": site.url}])
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(place)
        return page

    yield open_page
    for context in contexts:
        context.close()
    known = ("Failed to load resource", "frame-ancestors 'none'")
    assert [complaint for complaint in complaints if not any(one in complaint for one in known)] == []
