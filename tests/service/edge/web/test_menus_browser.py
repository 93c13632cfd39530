"""The filter menus, the search and the saved views in a real browser: by keys, on a phone and without scripts."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from service.core.store.suspensions.buckets import Buckets
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask
from tests.service.edge.web.test_gallery import check_page

NARROW: ViewportSize = {"width": 320, "height": 640}
WIDE: ViewportSize = {"width": 1440, "height": 900}
Open = Callable[..., Page]


async def ask_many(wiring: Wiring) -> None:
    """Items of twelve agents; with `agent-3` also one for ben."""
    await wiring.part(Buckets).complete(1)
    for number in range(12):
        await asked(wiring, make_ask(), agent=f"agent-{number}")
    await asked(wiring, make_ask(terms={"reviewers": ["ben"]}), agent="agent-3")


@pytest.mark.parametrize("viewport", [NARROW, PHONE, DESKTOP, WIDE], ids=["320", "phone", "desktop", "split"])
def test_menus_fit_the_screen_and_are_accessible(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    site.act(ask_many)
    page = open_as("/?q=refund", viewport=viewport)
    for name in ("Tool", "Agent", "Risk", "Due", "Views"):
        menu = page.locator(".chips summary", has_text=name)
        menu.click()
        expect(menu.locator("xpath=..").locator(".options")).to_be_in_viewport(ratio=0.9)
        check_page(page, f"{name} at {viewport['width']} px")
        page.keyboard.press("Escape")
        expect(page.locator(".options").filter(visible=True)).to_have_count(0)


def test_long_menu_is_narrowed_and_chosen_from_by_keys(site: Site, open_as: Open) -> None:
    site.act(ask_many)
    page = open_as("/", viewport=WIDE)
    expect(page.locator(".pane iframe:not([aria-busy])")).to_have_count(1)
    page.keyboard.press("f")
    expect(page.get_by_role("link", name="refund_payment 13 12 for me")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".chips summary", has_text="Tool")).to_be_focused()
    page.locator(".chips summary", has_text="Agent").press("Enter")
    expect(page.get_by_label("Find: Agent")).to_be_focused()
    page.keyboard.type("NT-1")
    expect(page.locator(".options li").filter(visible=True)).to_have_text(["agent-1 1", "agent-10 1", "agent-11 1"])
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#q")).to_have_value('agent:"agent-1"')
    expect(page.locator("#rows li")).to_have_count(1)
    page.get_by_role("link", name="Remove the filter Agent").click()
    expect(page.locator(".chip.chosen")).to_have_count(0)


def test_filters_and_search_work_without_scripts(site: Site, open_as: Open) -> None:
    site.act(ask_many)
    page = open_as("/", java_script_enabled=False)
    page.locator(".chips summary", has_text="Agent").click()
    page.get_by_role("link", name="agent-3 2 1 for me").click()
    expect(page.locator("#rows li")).to_have_count(2)
    page.get_by_role("link", name="For me 1").click()
    expect(page.locator("#rows li")).to_have_count(1)
    page.get_by_role("searchbox").fill("zebra")
    page.get_by_role("searchbox").press("Enter")
    expect(page.get_by_text("13 wait outside this filter.")).to_be_visible()
    page.locator(".chips summary", has_text="Views").click()
    expect(page.get_by_label("Save this search as")).to_be_visible()


def test_search_stands_behind_an_icon_on_a_phone(site: Site, open_as: Open) -> None:
    site.act(ask_many)
    page = open_as("/runs", viewport=PHONE)
    field = page.get_by_role("searchbox", name="Search open items")
    expect(field).not_to_be_in_viewport()
    page.get_by_role("link", name="Search", exact=True).click()
    expect(field).to_be_focused()
    check_page(page, "search on a phone")
    page.keyboard.type("agent:agent-3")
    page.keyboard.press("Enter")
    expect(page.locator(".chip.chosen summary")).to_have_text(["Agent: agent-3"])
    expect(page.locator("#rows li")).to_have_count(2)


def test_search_of_history_keeps_its_filters(site: Site, open_as: Open) -> None:
    page = open_as("/history?tool=refund")
    page.keyboard.press("/")
    page.keyboard.type("amount>7")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Tool", exact=True)).to_have_value("refund")
    expect(page.get_by_role("searchbox", name="Search history")).to_have_value("amount>7")


def test_view_is_saved_opened_and_deleted(site: Site, open_as: Open) -> None:
    site.act(ask_many)
    page = open_as("/?q=agent:agent-3+is:mine")
    views = page.locator(".chips summary", has_text="Views")
    views.click()
    page.get_by_label("Save this search as").fill("Three")
    page.get_by_role("button", name="Save view").click()
    views.click()
    expect(page.get_by_role("link", name="Three")).to_have_attribute("aria-current", "true")
    page.goto("/")
    views.click()
    page.get_by_role("link", name="Three").click()
    expect(page.locator("#q")).to_have_value("agent:agent-3 is:mine")
    expect(page.locator("#rows li")).to_have_count(1)
    views.click()
    page.get_by_role("button", name="Delete the view Three").click()
    views.click()
    expect(page.locator(".saved li")).to_have_count(0)
