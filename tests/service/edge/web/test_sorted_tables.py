"""Runs, history, rules and insights are sorted by links: in the text of the pages, and in Chromium."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.tools import ToolDefinition
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.history import pages as history
from service.features.insights import api as insights
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import asked, decide, make_ask
from tests.service.edge.web.test_gallery import check_page
from workers.outbox import Counting

Open = Callable[..., Page]
RULES = """\
version: 1
default: request_approval
rules:
  - {id: b-payments, tool: pay, action: deny, priority: 20}
  - {id: a-refunds, tool: refund, action: request_approval, priority: 10}
  - {id: c-reads, tool: read, action: allow, priority: 30}
"""
PLACES = ("/runs?sort=-agent", "/history?sort=item", "/rules?sort=rule", "/insights?tools=-asked&people=name")


async def decide_calls(wiring: Wiring) -> None:
    """Decide one call of each of three agents and tools, and count them."""
    for agent, tool in (("bravo", "zip"), ("alpha", "copy"), ("charlie", "move")):
        await decide(wiring, await asked(wiring, make_ask(ToolDefinition(name=tool), {"a": 1}), agent=agent), "approve")
    await Counting(wiring).count_waiting()


def list_first(page: str, pattern: str) -> list[str]:
    """Return what the pattern finds in each row of the first sortable table."""
    table = page.split("sortable")[1].split("</table>", maxsplit=1)[0]
    return [found[1] for row in table.split("<tr")[2:] if (found := re.search(pattern, row))]


def find_heading(page: str, name: str) -> str:
    """Return where the heading with this name leads."""
    found = re.search(rf'<th scope="col"[^>]*><a href="([^"]+)">{name}<', page)
    assert found is not None
    return unescape(found[1])


async def test_history_is_sorted_by_tool_in_both_directions(settings: Settings) -> None:
    async with visit(settings) as anna:
        await decide_calls(anna.wiring)
        page = await anna.read("/history")
        assert "aria-sort" not in page
        page = await anna.read(find_heading(page, "Item"))
        assert list_first(page, r'<span class="tool">(\w+)') == ["copy", "move", "zip"]
        assert 'aria-sort="ascending"' in page
        page = await anna.read(find_heading(page, "Item"))
        assert list_first(page, r'<span class="tool">(\w+)') == ["zip", "move", "copy"]
        assert 'aria-sort="descending"' in page


async def test_history_is_sorted_beyond_its_first_page(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PAGE", 2)
    async with visit(settings) as anna:
        await decide_calls(anna.wiring)
        page = await anna.read("/history?sort=item")
        assert list_first(page, r'<span class="tool">(\w+)') == ["copy", "move"]
        page = await anna.read("/history?sort=item&place=2")
        assert list_first(page, r'<span class="tool">(\w+)') == ["zip"]


async def test_history_says_how_many_it_sorts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_SORTED", 2)
    async with visit(settings) as anna:
        await decide_calls(anna.wiring)
        page = await anna.read("/history?sort=item")
        assert "The latest 2 are sorted." in page
        assert list_first(page, r'<span class="tool">(\w+)') == ["copy", "move"]


async def test_runs_are_sorted_and_keep_their_filter(settings: Settings) -> None:
    async with visit(settings) as anna:
        await decide_calls(anna.wiring)
        agents = r'class="name">(alpha|bravo|charlie)'
        page = await anna.read("/runs")
        assert list_first(page, agents) == ["charlie", "alpha", "bravo"]
        assert list_first(await anna.read(find_heading(page, "Agent")), agents) == ["alpha", "bravo", "charlie"]
        page = await anna.read("/runs?agent=a&sort=-agent")
        assert list_first(page, agents) == ["charlie", "bravo", "alpha"]
        assert "agent=a&sort=agent" in find_heading(page, "Agent")


async def test_rules_are_listed_in_the_order_of_trial_and_sorted(settings: Settings) -> None:
    assert settings.policy is not None
    settings.policy.write_text(RULES)
    async with visit(settings) as anna:
        rules = r'href="/rules/([\w-]+)"'
        page = await anna.read("/rules")
        assert list_first(page, rules) == ["c-reads", "b-payments", "a-refunds"]
        assert list_first(page, r'<td class="number">(\d)') == ["1", "2", "3"]
        assert list_first(await anna.read("/rules?sort=rule"), rules) == ["a-refunds", "b-payments", "c-reads"]
        assert list_first(await anna.read("/rules?sort=priority"), rules) == ["a-refunds", "b-payments", "c-reads"]


async def test_insights_show_the_first_tools_and_all_of_them(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insights, "FIRST_TOOLS", 2)
    async with visit(settings) as anna:
        await decide_calls(anna.wiring)
        tools = r'class="tool" href="/history\?tool=(\w+)'
        page = await anna.read("/insights?range=30d&tools=tool")
        assert list_first(page, tools) == ["copy", "move"]
        assert "Show all 3 tools" in page
        page = await anna.read(find_all(page))
        assert list_first(page, tools) == ["copy", "move", "zip"]
        assert 'href="?range=30d" aria-current="true"' in page
        assert list_first(await anna.read(find_heading(page, "Tool")), tools) == ["zip", "move", "copy"]


def find_all(page: str) -> str:
    """Return where the link to all tools leads."""
    return unescape(page.split("Show all", maxsplit=1)[0].rpartition('href="')[2].partition('"')[0])


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])
def test_headings_sort_by_press_and_keep_the_order_marked(
    site: Site, open_as: Open, viewport: ViewportSize, scripts: bool
) -> None:
    site.act(decide_calls)
    page = open_as("/runs", viewport=viewport, java_script_enabled=scripts)
    page.locator("thead").get_by_role("link", name="Agent").click()
    expect(page.locator("tbody tr th")).to_have_text(["Run of alpha", "Run of bravo", "Run of charlie"])
    expect(page.locator("[aria-sort=ascending]")).to_contain_text("Agent")
    page.get_by_role("link", name="Latest first").click()
    expect(page.locator("tbody tr th")).to_have_text(["Run of charlie", "Run of alpha", "Run of bravo"])


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_sorted_tables_are_accessible_and_fit_the_screen(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    site.act(decide_calls)
    page = open_as("/", viewport=viewport)
    for place in PLACES:
        page.goto(place)
        check_page(page, place)
        expect(page.locator("[aria-sort]").first).to_be_visible()
