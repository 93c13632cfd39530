"""Notifications without a channels file: turned on, offered once, and shown by open pages. In a real browser."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from service.channels.kinds import open_channels
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.builders import make_pending
from tests.fakes.push import Browser, PushService
from tests.service.edge.web.sites import Site, settings_for
from tests.service.features.phone.browsers import turn_on
from workers.notify.built_in import keep_built_in

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
UNDECIDED = "Object.defineProperty(Notification, 'permission', { get: () => 'default' })"
HIDDEN = """
Object.defineProperty(Notification, 'permission', { get: () => 'granted' });
Object.defineProperty(document, 'hidden', { get: () => true });
ServiceWorkerRegistration.prototype.showNotification = async (title, options) => {
  Object.assign(document.body.dataset, { shown: options.body, opens: options.data.path });
};
document.dispatchEvent(new Event('visibilitychange'));
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, aap_allow_loopback="true")


async def push_new_item(settings: Settings, browser: Browser, wiring: Wiring) -> None:
    """Send the card of a new item as the clock's process does, which shares nothing but the store."""
    stopping = asyncio.Event()
    channels = open_channels(settings).attach(wiring)
    sending = asyncio.create_task(keep_built_in(wiring, channels, stopping))
    await make_pending(wiring)
    async with asyncio.timeout(30):
        await asyncio.to_thread(browser.arrived.wait)
    stopping.set()
    await sending
    await channels.aclose()


@SIZES
def test_browser_that_was_turned_on_is_sent_a_new_item(
    site: Site, open_as: Open, push: PushService, viewport: ViewportSize
) -> None:
    page = open_as("/me", viewport=viewport, permissions=["notifications"])
    page.get_by_role("link", name="Mail, phone and browser").click()
    browser = turn_on(site.url, page, push)
    site.act(partial(push_new_item, site.settings, browser))
    (message,) = browser.received
    assert message["title"] == "Decide before it runs"


@SIZES
def test_notifications_are_offered_once(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as("/runs", viewport=viewport)
    page.add_init_script(UNDECIDED)
    page.goto("/")
    notice = page.locator("#notice")
    expect(notice).to_contain_text("This browser can notify you of items that wait for you.")
    expect(notice.get_by_role("link", name="Turn on notifications")).to_have_attribute("href", "/me/notifications")
    notice.get_by_role("button", name="Not now").click()
    expect(notice).to_be_empty()
    page.goto("/")
    expect(page.locator("#dot[data-state=live]")).to_have_count(1)
    expect(notice).to_be_empty()


def test_hidden_inbox_shows_a_notification_and_the_count(site: Site, open_as: Open) -> None:
    page = open_as("/")
    expect(page.locator("#dot[data-state=live]")).to_have_count(1)
    page.evaluate("navigator.serviceWorker.register('/service-worker.js').then(() => navigator.serviceWorker.ready)")
    page.evaluate(HIDDEN)
    site.act(make_pending)
    expect(page.locator("body[data-opens='/']")).to_have_attribute("data-shown", "1 item waits for you.")
    expect(page).to_have_title("(1) Inbox · Sayso")
