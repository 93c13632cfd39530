"""A real headless Chromium for tests, and for looking at pages: `python -m tests.browser URL FILE`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from launch.browser import ensure_browser

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1280, "height": 800}


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Start the machine's Chromium; nothing is downloaded."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure_browser(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def main() -> None:
    """Save a picture of a page."""
    url, file = sys.argv[1:]
    with running_browser() as browser:
        page = browser.new_page(viewport=DESKTOP)
        page.goto(url)
        page.screenshot(path=file, full_page=True)


if __name__ == "__main__":
    main()
