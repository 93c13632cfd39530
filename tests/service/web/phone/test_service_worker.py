"""Notifications in a real browser: asked for on a click, shown by the service worker, and opening their item."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

from launch.waits import wait_until
from sayso.records.suspensions import SuspensionRecord
from sayso.transitions.deciding import decide
from service.channels.cards import build_card
from service.channels.push.card import render_card
from service.settings import Settings
from service.web.sessions import cookie_name
from service.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.builders import make_pending
from tests.fakes.push import PushService
from tests.sayso.samples import word
from tests.service.web.sites import Site, serve

# A browser under test reaches no push service, so the page gets a subscription of the fake one.
SUBSCRIBE = """
PushManager.prototype.getSubscription = async () => null;
PushManager.prototype.subscribe = async (options) => {
  window.asked = options.userVisibleOnly && options.applicationServerKey.length;
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  const known = KNOWN;
  return { endpoint: known.endpoint, getKey: (name) => bytes(known[name]).buffer };
};
"""
CENTRE = """
() => {
  self.shown = new Map();
  ServiceWorkerRegistration.prototype.showNotification = async (title, options) => {
    if (options.renotify && !options.tag) throw new TypeError("renotify needs a tag");
    const notification = { title, ...options, close: () => self.shown.delete(options.tag) };
    self.shown.set(options.tag, notification);
  };
}
"""
"""The system's notification centre, which a headless browser has not: one notification for each tag."""

SHOWN = "() => [...self.shown.values()].map((one) => [one.title, one.body, one.tag, one.data.path])"
CLICK = """
async () => {
  const [notification] = self.shown.values();
  let done = null;
  const click = Object.assign(new Event("notificationclick"), { notification, waitUntil: (work) => { done = work; } });
  self.dispatchEvent(click);
  await done.catch(() => null);
}
"""
"""The event of a click. Only a person's click may move the focus or open a window."""


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


def turn_on(site: Site, page: Page, push: PushService) -> None:
    """Subscribe the browser by a click on its page."""
    sent = push.subscribe().subscription
    page.add_init_script(SUBSCRIBE.replace("KNOWN", sent.model_dump_json()))
    page.goto(f"{site.url}/account/notifications")
    page.get_by_role("button", name="Turn on for this browser").click()
    page.get_by_text("This browser will notify you.").wait_for()


def register(site: Site, page: Page) -> tuple[CDPSession, str]:
    """Register the service worker; return the debugger and the registration's id."""
    found: list[str] = []
    session = page.context.new_cdp_session(page)
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(one["registrationId"] for one in event["registrations"]),
    )
    session.send("ServiceWorker.enable")
    page.goto(site.url)
    page.evaluate("navigator.serviceWorker.register('/service-worker.js').then(() => navigator.serviceWorker.ready)")
    assert wait_until(lambda: bool(page.context.service_workers and page.evaluate("1") and found), 10)
    page.context.service_workers[0].evaluate(CENTRE)
    return session, found[-1]


def push_to(site: Site, session: CDPSession, registration: str, payload: bytes) -> None:
    """Deliver what a push service would."""
    session.send(
        "ServiceWorker.deliverPushMessage",
        {"origin": site.url, "registrationId": registration, "data": payload.decode()},
    )


def card(record: SuspensionRecord) -> bytes:
    found: bytes = render_card(build_card(record, record.items[0], None, "https://elsewhere.example")).body
    return found


def shown(page: Page, holds: Callable[[list[list[str]]], bool]) -> list[list[str]]:
    """Return the notifications once they are as expected."""
    found: list[list[str]] = []

    def look() -> bool:
        found[:] = page.context.service_workers[0].evaluate(SHOWN)
        return holds(found)

    assert wait_until(look, 10), found
    return found


def test_permission_is_asked_only_on_a_click(site: Site, page: Page) -> None:
    page.add_init_script("Notification.requestPermission = async () => { window.requested = true; return 'denied'; };")
    page.goto(f"{site.url}/account/notifications")
    assert page.evaluate("window.requested") is None
    page.get_by_role("button", name="Turn on for this browser").click()
    page.get_by_text("Notifications are blocked").wait_for()
    assert page.evaluate("window.requested")


def test_phone_subscribes_from_its_account(site: Site, page: Page, push: PushService) -> None:
    page.goto(f"{site.url}/account")
    page.get_by_role("link", name="Mail, phone and browser").click()
    turn_on(site, page, push)

    async def read(wiring: Wiring) -> list[str]:
        return await wiring.contacts.addresses_of("anna", "push")

    assert site.act(read) == [next(iter(push.browsers.values())).subscription.address]


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP])
def test_page_of_notifications_fits_its_screen(site: Site, page: Page, viewport: Any) -> None:
    page.set_viewport_size(viewport)
    page.goto(f"{site.url}/account/notifications")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    button = page.get_by_role("button", name="Turn on for this browser").bounding_box()
    assert button is not None
    assert button["height"] >= 44


def test_push_shows_one_notification_that_follows_its_item(site: Site, page: Page) -> None:
    record = site.act(make_pending)
    session, registration = register(site, page)
    push_to(site, session, registration, card(record))
    ((title, body, tag, path),) = shown(page, bool)
    assert (title, path) == ("Decide before it runs", f"/items/{record.id}/i1")
    assert body.startswith(record.items[0].tool.name)
    closed = decide(record, word(record), record.created_at_ms + 5).record
    push_to(site, session, registration, card(closed))
    ((title, body, after, _),) = shown(page, lambda found: bool(found) and found[0][0] == "Closed")
    assert (after, body.partition(" at ")[0]) == (tag, "ada approved this over api")


def test_click_on_a_notification_opens_the_item(site: Site, page: Page) -> None:
    record = site.act(make_pending)
    session, registration = register(site, page)
    push_to(site, session, registration, card(record))
    shown(page, bool)
    page.context.service_workers[0].evaluate(CLICK)
    page.wait_for_url(f"{site.url}/items/{record.id}/i1")
    page.get_by_role("button", name="Approve", exact=True).wait_for()
    assert shown(page, lambda found: not found) == []


@pytest.mark.parametrize("path", ["https://evil.example/x", "//evil.example/x"])
def test_notification_never_opens_another_site(site: Site, page: Page, path: str) -> None:
    session, registration = register(site, page)
    page.goto(f"{site.url}/")
    push_to(site, session, registration, json.dumps({"title": "x", "body": "y", "tag": "t", "path": path}).encode())
    shown(page, bool)
    page.context.service_workers[0].evaluate(CLICK)
    shown(page, lambda found: not found)
    assert page.url == f"{site.url}/"


def test_unreadable_push_still_shows_a_notification(site: Site, page: Page) -> None:
    session, registration = register(site, page)
    push_to(site, session, registration, b"not json")
    ((title, _, _, path),) = shown(page, bool)
    assert (title, path) == ("Sayso", "/")


def test_browser_accepts_the_dashboard_as_an_app(site: Site, page: Page) -> None:
    session, _ = register(site, page)
    assert session.send("Page.getAppManifest")["errors"] == []
    assert session.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
