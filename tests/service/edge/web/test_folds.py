"""Folds of the tree, and amounts with the currency beside them: in a real browser."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.service.edge.web.orders import ORDER, ask_order
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of

Open = Callable[..., Page]


async def ask_money(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of an order with an amount and a currency below a key."""
    args: JsonObject = {"fee": {"amount": 4890, "currency": "eur"}, "count": 1234567}
    return await asked(wiring, make_ask(ORDER, args))


def test_folds_are_remembered_for_the_tool(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_order)))
    page.keyboard.press("2")
    folded = page.locator(".tree details").first
    folded.locator("summary").first.click()
    expect(folded).not_to_have_attribute("open", "")
    page.goto(place_of(site.act(ask_order)))
    page.keyboard.press("2")
    expect(page.locator(".tree details").first).not_to_have_attribute("open", "")
    page.locator(".tree details summary").first.click()
    page.reload()
    expect(page.locator(".tree details").first).to_have_attribute("open", "")
    page.goto(place_of(site.act(ask_money)))
    expect(page.locator(".tree details").first).to_have_attribute("open", "")


def test_amount_shows_its_currency_and_is_copied_as_stored(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_money)))
    amount = page.locator(".read .money")
    expect(amount).to_have_text("4890")
    expect(amount).to_have_attribute("data-currency", "EUR")
    expect(amount).to_have_attribute("data-decimals", ".00")
    shown = "element => getComputedStyle(element, '::before').content"
    assert amount.evaluate(shown) == '"EUR "'
    assert (
        amount.evaluate("element => { getSelection().selectAllChildren(element); return `${getSelection()}`; }")
        == "4890"
    )
    count = page.locator(".read").get_by_role("row", name="count").locator("td")
    assert count.locator(".money").count() == 0
    assert count.locator(".three").count() == 2


def test_skip_link_leads_to_the_decision(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_order)))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the decision")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#answers")).to_be_focused()
