"""A real browser's side of push: its subscription, its service worker, and the notifications that this shows."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page

from launch.stops import wait_until
from tests.fakes.push import Browser, PushService

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


@dataclass(frozen=True)
class Notified:
    """A page's browser: its service worker, and the debugger that delivers what a push service would."""

    page: Page
    url: str
    session: CDPSession
    registration: str

    def push(self, payload: bytes) -> None:
        """Deliver a message to the service worker."""
        message = {"origin": self.url, "registrationId": self.registration, "data": payload.decode()}
        self.session.send("ServiceWorker.deliverPushMessage", message)

    def shown(self, holds: Callable[[list[list[str]]], bool] = bool) -> list[list[str]]:
        """Return title, text, tag and path of the notifications once they are as expected."""
        found: list[list[str]] = []

        def look() -> bool:
            found[:] = self.page.context.service_workers[0].evaluate(SHOWN)
            return holds(found)

        assert wait_until(look, 10), found
        return found

    def click(self) -> None:
        """Click on the first notification."""
        self.page.context.service_workers[0].evaluate(CLICK)


def turn_on(url: str, page: Page, push: PushService) -> Browser:
    """Subscribe the browser by a click on its page; return the push service's side of it."""
    browser = push.subscribe()
    page.add_init_script(SUBSCRIBE.replace("KNOWN", browser.subscription.model_dump_json()))
    page.goto(f"{url}/me/notifications")
    page.get_by_role("button", name="Turn on for this browser").click()
    page.get_by_text("This browser will notify you.").wait_for()
    return browser


def register(url: str, page: Page) -> Notified:
    """Register the service worker, with a notification centre of its own."""
    found: list[str] = []
    session = page.context.new_cdp_session(page)
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(one["registrationId"] for one in event["registrations"]),
    )
    session.send("ServiceWorker.enable")
    page.goto(url)
    page.evaluate("navigator.serviceWorker.register('/service-worker.js').then(() => navigator.serviceWorker.ready)")
    assert wait_until(lambda: bool(page.context.service_workers and page.evaluate("1") and found), 10)
    page.context.service_workers[0].evaluate(CENTRE)
    return Notified(page, url, session, found[-1])
