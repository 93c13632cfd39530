"""Read an item's page as a person does before deciding."""

import re

from playwright.sync_api import Page, expect


def read_to_the_end(page: Page) -> None:
    """Have every text shown to its end: until then the main button leads to the next of them."""
    while page.locator(".decide [aria-disabled]").count():
        page.evaluate("document.querySelector('.decide [aria-disabled]')?.click()")


def approve_edit(page: Page) -> None:
    """Review the changes of an edit down to the last one, and approve them."""
    page.get_by_role("button", name=re.compile("^Review")).click()
    approve = page.get_by_role("button", name=re.compile("^Approve with"))
    expect(approve).to_be_visible()
    page.locator(".what").evaluate("node => node.scrollIntoView({ block: 'end' })")
    approve.click()
