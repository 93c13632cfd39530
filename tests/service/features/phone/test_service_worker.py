"""Notifications in a real browser: asked for on a click, shown by the service worker, and opening their item."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import decide
from service.channels.cards import build_card
from service.channels.push import render_card
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.edge.web.sessions import cookie_name
from tests.browser import DESKTOP, PHONE
from tests.builders import make_pending
from tests.fakes.push import PushService
from tests.sayso.samples import word
from tests.service.edge.web.sites import Site, serve
from tests.service.features.phone.browsers import register, turn_on


@pytest.fixture
def site(settings: Settings) -> Iterator[Site]:
    with serve(settings) as running:
        yield running


@pytest.fixture
def context(site: Site, browser: Browser) -> Iterator[BrowserContext]:
    """anna's phone, which allows notifications once it is asked."""
    opened = browser.new_context(viewport=PHONE, permissions=["notifications"])
    token = site.token_of("anna")
    opened.add_cookies([{"name": cookie_name(site.settings), "value": token, "url": site.url}])
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def card(record: SuspensionRecord) -> bytes:
    found: bytes = render_card(build_card(record, record.items[0], None, "https://elsewhere.example")).body
    return found


def test_permission_is_asked_only_on_a_click(site: Site, page: Page) -> None:
    page.add_init_script("Notification.requestPermission = async () => { window.requested = true; return 'denied'; };")
    page.goto(f"{site.url}/me/notifications")
    assert page.evaluate("window.requested") is None
    page.get_by_role("button", name="Turn on for this browser").click()
    page.get_by_text("Notifications are blocked").wait_for()
    assert page.evaluate("window.requested")


def test_phone_subscribes_from_its_account(site: Site, page: Page, push: PushService) -> None:
    page.goto(f"{site.url}/me")
    page.get_by_role("link", name="Mail, phone and browser").click()
    turn_on(site.url, page, push)

    async def read(wiring: Wiring) -> list[str]:
        return await wiring.contacts.addresses_of("anna", "push")

    assert site.act(read) == [next(iter(push.browsers.values())).subscription.address]


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP])
def test_page_of_notifications_fits_its_screen(site: Site, page: Page, viewport: Any) -> None:
    page.set_viewport_size(viewport)
    page.goto(f"{site.url}/me/notifications")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    button = page.get_by_role("button", name="Turn on for this browser").bounding_box()
    assert button is not None
    assert button["height"] >= 44


def test_push_shows_one_notification_that_follows_its_item(site: Site, page: Page) -> None:
    record = site.act(make_pending)
    phone = register(site.url, page)
    phone.push(card(record))
    ((title, body, tag, path),) = phone.shown()
    assert (title, path) == ("Decide before it runs", f"/items/{record.id}/i1")
    assert body.startswith(record.items[0].tool.name)
    closed = decide(record, word(record), record.created_at_ms + 5).record
    phone.push(card(closed))
    ((title, body, after, _),) = phone.shown(lambda found: bool(found) and found[0][0] == "Closed")
    assert (after, body.partition(" at ")[0]) == (tag, "ada approved this over api")


def test_click_on_a_notification_opens_the_item(site: Site, page: Page) -> None:
    record = site.act(make_pending)
    phone = register(site.url, page)
    phone.push(card(record))
    phone.shown()
    phone.click()
    page.wait_for_url(f"{site.url}/items/{record.id}/i1")
    page.locator(".approval .wide").wait_for()
    assert phone.shown(lambda found: not found) == []


@pytest.mark.parametrize("path", ["https://evil.example/x", "//evil.example/x"])
def test_notification_never_opens_another_site(site: Site, page: Page, path: str) -> None:
    phone = register(site.url, page)
    page.goto(f"{site.url}/")
    phone.push(json.dumps({"title": "x", "body": "y", "tag": "t", "path": path}).encode())
    phone.shown()
    phone.click()
    phone.shown(lambda found: not found)
    assert page.url == f"{site.url}/"


def test_unreadable_push_still_shows_a_notification(site: Site, page: Page) -> None:
    phone = register(site.url, page)
    phone.push(b"not json")
    ((title, _, _, path),) = phone.shown()
    assert (title, path) == ("Sayso", "/")


def test_browser_accepts_the_dashboard_as_an_app(site: Site, page: Page) -> None:
    phone = register(site.url, page)
    assert phone.session.send("Page.getAppManifest")["errors"] == []
    assert phone.session.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
