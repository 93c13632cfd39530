"""Input that was not sent is never discarded without a question, whichever way an item is left; in a real browser."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Dialog, Page, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.service.edge.web.reading import unfold
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of
from tests.service.edge.web.test_split import WIDE, ask_three, expect_open, pane_of
from tests.service.features.alike.test_pages import ask_refunds

Open = Callable[..., Page]
OWN, BROWSER = "Discard your input?", ""
"""What the page itself asks; the browser's own question has no text of ours."""


async def ask_group(wiring: Wiring) -> list[SuspensionRecord]:
    """Two items of their own, and three alike ones below them."""
    first = [
        await asked(wiring, make_ask(terms={"timeout_s": 300 + place}), agent=f"shop-{place}") for place in range(2)
    ]
    return [*first, *await ask_refunds(wiring, [101, 102, 103])]


@contextmanager
def answering(page: Page, *, leave: bool) -> Iterator[list[str]]:
    """Answer each question of the page with yes or no; collect the questions."""
    questions: list[str] = []

    def answer(dialog: Dialog) -> None:
        questions.append(dialog.message)
        if leave:
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", answer)
    yield questions
    page.remove_listener("dialog", answer)


def begin_denial(page: Page, record: SuspensionRecord) -> None:
    expect_open(page, record)
    pane_of(page).get_by_text("Deny…", exact=True).click()
    pane_of(page).get_by_label("Reason").fill("I am still typ")


def expect_kept(page: Page, record: SuspensionRecord) -> None:
    expect_open(page, record)
    expect(pane_of(page).get_by_label("Reason")).to_have_value("I am still typ")


def decide_together(page: Page) -> None:
    boxes = page.locator("#rows .pick input")
    for place in range(2):
        if not boxes.nth(place).is_checked():
            boxes.nth(place).check()
    page.get_by_role("button", name="Decide together").click()


def decide_together_by_key(page: Page) -> None:
    boxes = page.locator("#rows .pick input")
    for place in range(2):
        boxes.nth(place).check()
    boxes.nth(1).press("Control+Enter")


def open_group(page: Page) -> None:
    page.locator("li.several a").click()


def search(page: Page) -> None:
    page.locator("#q").fill("refund")
    page.locator("#q").press("Enter")


def filter_mine(page: Page) -> None:
    page.get_by_role("link", name="For me").click()


def open_history(page: Page) -> None:
    page.get_by_role("link", name="History").first.click()


WAYS = [decide_together, decide_together_by_key, open_group, search, filter_mine, open_history]


@pytest.mark.parametrize("leave", WAYS)
def test_every_way_out_of_the_inbox_asks_once(site: Site, open_as: Open, leave: Callable[[Page], None]) -> None:
    first, *_ = site.act(ask_group)
    page = open_as("/", viewport=WIDE)
    begin_denial(page, first)
    before = page.url
    with answering(page, leave=False) as questions:
        leave(page)
        assert questions == [OWN]
    expect(page).to_have_url(before)
    expect_kept(page, first)
    with answering(page, leave=True) as questions:
        leave(page)
        expect(page).not_to_have_url(before)
    assert questions == [OWN]


def test_keys_reload_and_links_of_the_item_ask(site: Site, open_as: Open) -> None:
    first, *_ = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    begin_denial(page, first)
    page.locator(f"#{first.id}-i1 a").focus()
    with answering(page, leave=False) as questions:
        page.keyboard.press("g")
        page.keyboard.press("h")
        expect_kept(page, first)
        pane_of(page).locator(".head").get_by_role("link", name="support-0").click()
        expect_kept(page, first)
        page.evaluate("location.reload()")
        expect_kept(page, first)
    assert questions == [BROWSER] * 3


def test_what_was_sent_or_discarded_is_not_asked_about(site: Site, open_as: Open) -> None:
    first, second, third = site.act(ask_three)
    page = open_as("/", viewport=WIDE)
    with answering(page, leave=True) as questions:
        begin_denial(page, first)
        page.locator(f"#{second.id}-i1 a").click()
        expect_open(page, second)
        assert questions == [OWN]
        begin_denial(page, second)
        expect(pane_of(page).locator(".decide[aria-disabled]")).to_have_count(0)
        page.keyboard.press("Control+Enter")
        expect_open(page, third)
        page.keyboard.press("2")
        page.locator(f"#{first.id}-i1 a").click()
        expect_open(page, first)
        page.get_by_role("link", name="History").first.click()
        expect(page).to_have_url(f"{site.url}/history")
    assert questions == [OWN]


def test_page_of_an_item_asks_about_a_comment_but_not_about_the_decision(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    unfold(page, "Comments")
    page.locator("#comment").fill("Ask the customer first")
    with answering(page, leave=False) as questions:
        page.get_by_role("link", name="History").first.click()
        expect(page.locator("#comment")).to_have_value("Ask the customer first")
    assert questions == [BROWSER]
    page.locator("#comment").fill("")
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("Too old")
    with answering(page, leave=False) as questions:
        expect(page.locator(".decide[aria-disabled]")).to_have_count(0)
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
    assert questions == []
