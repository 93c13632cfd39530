"""Give tests of the service the running app with its people and agents, a site of pages, or parts of the store."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from redis.asyncio import Redis

from sayso import __version__
from service.app import create_app
from service.core.settings import CHECKOUT, Settings
from service.core.store.connection.connecting import connect
from service.core.store.connection.formats import check_format
from service.core.store.suspensions.saving import Suspensions
from service.core.wiring import Wiring
from tests.browser import DESKTOP, running_browser
from tests.builders import make_agent, make_person, register_agent, store_of
from tests.servers import Address, replaced_server
from tests.service.edge.web.sites import Site, serve, settings_for
from tests.service.worlds import POLICY, World


@pytest.fixture(scope="session")
def sdk_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the SDK that the service offers: the one that `make` built, or one that is built now."""
    place = Path(sys.prefix) / "sdk" / f"sayso-{__version__}-py3-none-any.whl"
    if not place.is_file():
        folder = tmp_path_factory.mktemp("sdk")
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(build, cwd=CHECKOUT, check=True)
        place.parent.mkdir(exist_ok=True)
        shutil.move(folder / place.name, place)
    return place


@pytest.fixture
async def world(clean_store_url: str, settings: Settings) -> AsyncIterator[World]:
    """Agents `demo` and `other`, the reviewer `anna` and the admin `root`."""
    await check_format(clean_store_url)
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        wiring: Wiring = app.state.process.wiring
        await register_agent(wiring)
        yield World(
            app,
            wiring,
            {
                "demo": await make_agent(wiring, "demo"),
                "other": await make_agent(wiring, "other"),
                "anna": await make_person(wiring, "anna"),
                "root": await make_person(wiring, "root", "reviewer", "admin"),
            },
        )


@pytest.fixture
def address(tmp_path: Path) -> Iterator[Address]:
    """The address of a server of its own, which a replica or an earlier copy can take."""
    with replaced_server(tmp_path) as address:
        yield address


@pytest.fixture
def settings(request: pytest.FixtureRequest, clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings of an empty store, with the policy of the world or of a site; a test module may have its own."""
    if "world" in request.fixturenames:
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY)
        return Settings(redis_url=clean_store_url, policy=policy)
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
    assert [complaint for complaint in complaints if not any(text in complaint for text in known)] == []


@pytest.fixture
async def redis(clean_store_url: str) -> AsyncIterator[Redis]:
    """A client of the empty store."""
    client = connect(clean_store_url)
    yield client
    await client.aclose()


@pytest.fixture
def store(redis: Redis) -> Suspensions:
    """The way to its records."""
    return Suspensions(store_of(redis))
