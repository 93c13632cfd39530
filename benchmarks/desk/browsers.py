"""The time from a decision to the pixel in another person's browser, with real Chromium."""

import httpx
from playwright.sync_api import Page, sync_playwright

from benchmarks.peers.processes import Running
from launch.browser import ensure_browser
from sayso.core.clock import now_ms

_STREAM_MS = 700  # until a page's stream is open
_WATCH = """id => {
    const gone = () => { const row = document.getElementById(id); return !row || row.matches(".gone"); };
    globalThis.seenAt = new Promise((resolve) => {
        const look = () => { if (gone()) resolve(Date.now()); else requestAnimationFrame(look); };
        look();
    });
}"""


def measure_pixels(running: Running, count: int) -> list[float]:
    """Return the times, ms, of `count` denials from their request to the row in a browser that shows the inbox."""
    site = f"http://localhost:{running.port}"
    with sync_playwright() as playwright, httpx.Client(base_url=site, timeout=60) as reviewer:
        answer = reviewer.post("/api/v1/sessions", json={"name": "admin", "password": running.password})
        reviewer.headers["Authorization"] = f"Bearer {answer.json()['token']}"
        browser = playwright.chromium.launch(executable_path=ensure_browser(), args=["--no-sandbox"])
        page = browser.new_context().new_page()
        page.goto(f"{site}/sign-in")
        page.fill("input[name=name]", "admin")
        page.fill("input[name=password]", running.password)
        page.press("input[name=password]", "Enter")
        page.wait_for_url(f"{site}/welcome")
        times = [_deny(reviewer, page, site) for _ in range(count)]
        browser.close()
    return times


def _deny(reviewer: httpx.Client, page: Page, site: str) -> float:
    page.goto(f"{site}/?q=is:mine")
    href = page.locator("#rows li a[href^='/items/']").first.get_attribute("href") or ""
    suspension_id, item_id = href.split("/")[2:4]
    page.wait_for_timeout(_STREAM_MS)
    page.evaluate(_WATCH, f"{suspension_id}-{item_id}")
    found = reviewer.get(f"/api/v1/suspensions/{suspension_id}").json()
    digest = next(one["digest"] for one in found["items"] if one["item_id"] == item_id)
    began_ms = now_ms()
    path = f"/api/v1/suspensions/{suspension_id}/items/{item_id}/decision"
    reviewer.post(path, json={"action": "deny", "digest": digest}).raise_for_status()
    return float(page.evaluate("globalThis.seenAt")) - began_ms
