"""Numbers as the reader's language writes them, in rows, heads, arguments, flags, tables and edits. In a browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import begin_edit, settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of
from tests.service.edge.web.test_shown import decisions_of

Open = Callable[..., Page]
GERMAN = {"locale": "de-DE", "extra_http_headers": {"Accept-Language": "de"}}
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
ARGS: JsonObject = {"order_id": "A-1", "amount": 4890, "currency": "EUR", "rate": 1234.5}


async def ask_money(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a refund of 4890 euros."""
    return await asked(wiring, make_ask(args=ARGS))


def look(value: Locator) -> str:
    """Return what a number looks like: with what the style sheet adds, and without what it hides."""
    return str(
        value.evaluate(
            """element => {
            const written = (node, side) => {
                const { content } = getComputedStyle(node, side);
                return content.startsWith('"') ? [...content.matchAll(/"([^"]*)"/g)].map((one) => one[1]).join("") : "";
            };
            const read = (node) => node.nodeType === Node.TEXT_NODE ? node.data
                : node.ariaHidden === "true" ? ""
                : written(node, "::before") + [...node.childNodes].map(read).join("") + written(node, "::after");
            return read(element);
        }"""
        )
    )


def copy(value: Locator) -> str:
    script = "element => { getSelection().selectAllChildren(element); return `${getSelection()}`; }"
    return str(value.evaluate(script))


@SIZES
def test_german_pages_write_german_numbers(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(ask_money)
    page = open_as("/", viewport=viewport, **GERMAN)
    expect(page.locator("li.item h3")).to_contain_text("4.890,00 EUR")
    page.goto(place_of(record))
    expect(page.locator("h1")).to_have_text("Refund payment 4.890,00 EUR")
    expect(page.locator(".approval .wide")).to_contain_text("4.890,00 EUR")
    amount, rate = page.locator(".read .money"), page.locator(".read .point").locator("xpath=ancestor::td")
    assert (look(amount), copy(amount)) == ("4.890,00 EUR", "4890")
    assert (look(rate), copy(rate)) == ("1234,5", "1234.5")


def test_english_pages_write_english_numbers(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_money)))
    expect(page.locator("h1")).to_have_text("Refund payment EUR 4,890.00")
    assert look(page.locator(".read .money")) == "EUR 4,890.00"
    assert page.locator(".point").count() == 0


@SIZES
def test_german_edit_takes_a_decimal_comma(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    args: JsonObject = {"order_id": "A-1", "amount": 4890.5, "currency": "EUR"}
    record = site.act(lambda wiring: asked(wiring, make_ask(args=args)))
    page = open_as(place_of(record), viewport=viewport, **GERMAN)
    begin_edit(page)
    expect(page.get_by_label("amount")).to_have_value("4890,5")
    page.get_by_label("amount").fill("1.234")
    page.locator(".review").click()
    problem = page.locator(".problem", has_text="1.234")
    expect(problem).to_have_text("1.234 kann 1234 oder 1,234 bedeuten. Geben Sie eines davon ein.")
    page.get_by_label("amount").fill("1,234")
    page.locator(".review").click()
    expect(page.locator(".changes tr.changed td").last).to_have_text("1.234")
    settle(page)
    page.locator(".back").click()
    page.get_by_label("amount").fill("19,90")
    page.locator(".review").click()
    row = page.locator(".changes tr.changed")
    expect(row).to_have_count(1)
    assert [look(cell) for cell in row.locator("td").all()] == ["4.890,50 EUR", "19,90 EUR"]
    settle(page)
    page.locator(".edited .wide, [form=edited-form].wide").first.click()
    expect(page.locator(".decide, .closed").first).to_contain_text("anna")
    (decision,) = decisions_of(site, record)
    assert decision.args == {**args, "amount": 19.9}


@SIZES
def test_sums_of_alike_items_follow_the_language(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    async def ask_three(wiring: Wiring) -> None:
        for amount in (1000.5, 2000, 3000):
            await asked(wiring, make_ask(args={**ARGS, "amount": amount}))

    site.act(ask_three)
    page = open_as("/", viewport=viewport, **GERMAN)
    expect(page.locator(".several .total")).to_have_text("6.000,50 EUR")
    page.locator(".several a").first.click()
    total = page.locator("tfoot .sum")
    expect(total).to_have_text("6.000,50 EUR")
    page.locator("tbody input[type=checkbox]").first.uncheck()
    expect(total).to_have_text("5.000,00 EUR")
