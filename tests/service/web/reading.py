"""Read an item's page as a person does before deciding."""

from playwright.sync_api import Page


def read_to_the_end(page: Page) -> None:
    """Have every text shown to its end, with the page's own button."""
    while page.locator("#unread").is_visible():
        page.locator("#unread button").dispatch_event("click")
