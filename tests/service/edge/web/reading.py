"""Read an item's page as a person does before deciding."""

import re

from playwright.sync_api import Page, expect


def read_to_the_end(page: Page) -> None:
    """Have every text shown to its end: until then the main button leads to the next of them."""
    page.wait_for_load_state()  # the button is held back from then on
    held = ".decide [aria-disabled], .alternative [aria-disabled]"
    while page.locator(held).count():
        page.evaluate("held => document.querySelector(held)?.click()", held)


def unfold(page: Page, heading: str) -> None:
    """Open what folds to a line below the arguments."""
    page.locator(".folded > summary", has_text=heading).click()


def begin_edit(page: Page) -> None:
    """Press Edit; on a phone it stands behind the button of further actions."""
    others = page.locator(".others")
    if others.is_visible():
        others.click()
    page.locator(".begin").click()


def approve_edit(page: Page) -> None:
    """Review the changes of an edit down to the last one, and approve them."""
    page.get_by_role("button", name=re.compile("^Review")).click()
    approve = page.get_by_role("button", name=re.compile("^Approve with"))
    expect(approve).to_be_visible()
    page.locator(".what").evaluate("node => node.scrollIntoView({ block: 'end' })")
    approve.click()


def settle(page: Page) -> None:
    """Wait until the page takes presses on its decision: it ignores those within 400 ms of a change of the bar."""
    page.wait_for_load_state()
    expect(page.locator(".decide[aria-disabled]")).to_have_count(0)


def press_approve(page: Page) -> None:
    """Press Approve, and once more where the page asks because of a severe warning."""
    button = page.locator(".approval .wide")
    asks = "caution" in (button.get_attribute("class") or "")
    button.click()
    if asks:
        expect(page.locator(".armed, .question:not([hidden])")).to_be_visible()
        settle(page)
        button.click()
