"""Read an item's page as a person does before deciding."""

from playwright.sync_api import Page


def read_to_the_end(page: Page) -> None:
    """Have every text shown to its end: until then the main button leads to the next of them."""
    button = page.locator(".decide [aria-disabled]").first
    while button.count():
        button.dispatch_event("click")
