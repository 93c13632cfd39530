"""Read an item's page as a person does before deciding."""

from playwright.sync_api import Page


def read_to_the_end(page: Page) -> None:
    """Have every text shown to its end: until then the main button leads to the next of them."""
    while page.locator(".decide [aria-disabled]").count():
        page.evaluate("document.querySelector('.decide [aria-disabled]')?.click()")
