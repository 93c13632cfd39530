"""Arguments as people write them: lists on one line, tables, texts with their line breaks, and titles. In a browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import begin_edit, press_approve, read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of
from tests.service.edge.web.test_shown import cells_of, shown_in

Open = Callable[..., Page]
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])

STOCK = ToolDefinition(
    name="book_stock",
    parameters={
        "type": "object",
        "properties": {
            "warehouse": {"type": "string", "title": "Where the goods are"},
            "tags": {"type": "array", "title": "Tags", "items": {"type": "string"}},
            "lines": {"items": {"properties": {"qty": {"type": "integer", "title": "Pieces"}}}, "type": "array"},
        },
    },
)
CONTRACT = "\n  The seller hands over the goods in May,\nand the buyer pays for them in June.\n"


def rows_of(count: int) -> JsonObject:
    return {"lines": [{"sku": f"CUP-{place}", "qty": place, "price": place * 1.5} for place in range(count)]}


async def ask_stock(wiring: Wiring, args: JsonObject) -> SuspensionRecord:
    """A run that waits for approval of a booking."""
    await wiring.runs.save_definitions([STOCK])
    return await asked(wiring, make_ask(STOCK, args))


def open_stock(site: Site, open_as: Open, args: JsonObject, **options: object) -> Page:
    return open_as(place_of(site.act(lambda wiring: ask_stock(wiring, args))), **options)


@SIZES
def test_list_of_plain_values_stands_on_one_line(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_stock(site, open_as, {"tags": ["fragile", 1, None], "names": ["Lee, A.", "B"]}, viewport=viewport)
    expect(page.locator(".read tr", has_text="tags").locator("td")).to_have_text("[fragile, 1, null]")
    assert cells_of(page)[1:] == [["names[0]", "Lee, A."], ["names[1]", "B"]], "a comma inside parts no entries"
    expect(page.locator(".counted")).to_have_text("All 5 values shown")


@SIZES
def test_long_table_shows_its_first_rows_and_all_on_a_press(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(lambda wiring: ask_stock(wiring, rows_of(1_500)))
    page = open_as(place_of(record), viewport=viewport)
    rows, approve = page.locator(".read .like tbody tr"), page.locator(".approval .wide")
    expect(rows).to_have_count(50)
    assert page.evaluate("document.querySelectorAll('*').length") < 2_500
    expect(approve).to_be_disabled()
    page.mouse.wheel(0, 100_000)
    expect(approve).to_have_text("Approve · 1 text not yet shown")
    page.locator(".read").get_by_role("button", name="Show all 1,500 rows").click()
    expect(rows).to_have_count(1_500)
    expect(rows.nth(50)).to_be_focused()
    expect(approve).to_be_disabled()
    rows.last.scroll_into_view_if_needed()
    page.mouse.wheel(0, 400)
    expect(approve).to_be_enabled()
    expect(page.locator(".counted")).to_have_text("All 4500 values shown")
    press_approve(page)
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    assert shown_in(site, record).values_shown == 4_500
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_approve_leads_through_a_long_table(site: Site, open_as: Open) -> None:
    page = open_stock(site, open_as, rows_of(60))
    read_to_the_end(page)
    expect(page.locator(".read .like tbody tr")).to_have_count(60)
    expect(page.locator(".approval .wide")).to_be_enabled()


def test_table_without_scripts_has_every_row(site: Site, open_as: Open) -> None:
    page = open_stock(site, open_as, rows_of(60), java_script_enabled=False)
    expect(page.locator(".read .like tbody tr").filter(visible=True)).to_have_count(60)


def test_table_names_its_columns_and_leaves_cells_empty(site: Site, open_as: Open) -> None:
    args: JsonObject = {"lines": [{"sku": "CUP", "qty": 1}, {"qty": 2, "sku": ""}, {"sku": "MUG"}]}
    page = open_stock(site, open_as, args)
    assert cells_of(page) == [["lines", "sku", "Pieces qty", "CUP", "1", '""', "2", "MUG", ""]]


@SIZES
def test_text_keeps_its_line_breaks_and_prose_its_font(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_stock(site, open_as, {"text": CONTRACT, "json": '{\n "a": 1\n}', "id": " 7"}, viewport=viewport)
    text = page.locator(".read tr", has_text="The seller").locator("td")
    assert [line.removesuffix("↵") for line in text.inner_text().splitlines()][:4] == CONTRACT.splitlines()
    assert "system-ui" in text.evaluate("cell => getComputedStyle(cell).fontFamily")
    code = page.locator(".read tr", has_text='"a": 1').locator("td")
    assert code.text_content() == '{↵\n "a": 1↵\n}'
    assert "system-ui" not in code.evaluate("cell => getComputedStyle(cell).fontFamily")
    assert page.locator(".read tr", has_text="id").locator("td").text_content() == '" 7"'


def test_title_stands_beside_the_name(site: Site, open_as: Open) -> None:
    page = open_stock(site, open_as, {"warehouse": "Basel", "tags": ["a"]})
    assert cells_of(page) == [["Where the goods are warehouse", "Basel"], ["tags", "[a]"]]
    begin_edit(page)
    expect(page.locator("#edit label").first).to_have_text("Where the goods are warehouse optional")
