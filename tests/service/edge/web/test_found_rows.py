"""A search of the inbox in Chromium: its count, rows that are appended, and a place that survives."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.store.suspensions.buckets import Buckets
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.sites import PASSWORD, Site
from tests.service.edge.web.stories import asked, make_ask
from tests.service.edge.web.test_gallery import check_page

WIDE: ViewportSize = {"width": 1440, "height": 900}
SCREENS = pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=["phone", "desktop"])
SEARCH = "/?q=place%3E%3D10"
Open = Callable[..., Page]


async def ask_many(wiring: Wiring) -> list[SuspensionRecord]:
    """Seventy items, of which sixty fit the search, in the order of their deadlines."""
    await wiring.part(Buckets).complete(1)
    return [
        await asked(wiring, make_ask(args={"place": place}, terms={"timeout_s": 4_000 + place}), agent=f"agent-{place}")
        for place in range(70)
    ]


@SCREENS
def test_next_rows_are_appended_and_the_head_counts_all(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    site.act(ask_many)
    page = open_as(SEARCH, viewport=viewport)
    expect(page.locator("#found")).to_have_text("60 found")
    expect(page.locator("#rows .item")).to_have_count(50)
    first = page.locator("#rows .item").first.get_attribute("id")
    page.get_by_role("link", name="Load 50 more").click()
    expect(page.locator("#rows .item")).to_have_count(60)
    assert page.locator("#rows .item").first.get_attribute("id") == first
    expect(page.get_by_role("link", name="Load 50 more")).to_have_count(0)
    expect(page.locator("#q")).to_have_value("place>=10")
    check_page(page, f"found rows at {viewport['width']} px")


def test_back_leads_to_the_row_that_was_left(site: Site, open_as: Open) -> None:
    records = site.act(ask_many)
    page = open_as(SEARCH, viewport=PHONE)
    page.get_by_role("link", name="Load 50 more").click()
    row = page.locator(f"#{records[66].id}-i1")
    row.get_by_role("link").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    page.go_back()
    expect(row).to_be_in_viewport()
    expect(page.locator("#q")).to_have_value("place>=10")


def test_way_back_from_an_item_leads_to_its_row(site: Site, open_as: Open) -> None:
    records = site.act(ask_many)
    page = open_as(SEARCH, viewport=PHONE)
    page.get_by_role("link", name="Load 50 more").click()
    row = page.locator(f"#{records[66].id}-i1")
    row.get_by_role("link").click()
    page.locator(".crumb a").click()
    expect(row).to_be_in_viewport()
    expect(row.get_by_role("link")).to_be_focused()


@SCREENS
def test_filter_survives_a_decision_and_the_next_item(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    records = site.act(ask_many)
    page = open_as(SEARCH, viewport=viewport)
    if viewport is PHONE:
        page.locator(f"#{records[69].id}-i1, #{records[10].id}-i1").first.get_by_role("link").click()
        page.get_by_role("button", name="Approve").first.click()
        expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
        page.get_by_role("link", name="Next item").first.click()
        expect(page).to_have_url(f"{site.url}/items/{records[11].id}/i1")
        page.locator(".crumb a").click()
    else:
        frame = page.frame_locator(".pane iframe")
        frame.get_by_role("button", name="Approve").first.click()
        expect(page.locator(".latest")).to_contain_text("approved")
        page.reload()
    expect(page.locator("#q")).to_have_value("place>=10")
    expect(page.locator("#found")).to_have_text("59 found")


def test_filter_and_place_survive_a_sign_in(site: Site, open_as: Open) -> None:
    async def begin(wiring: Wiring) -> list[SuspensionRecord]:
        await wiring.reviewers.add("ada", PASSWORD, ("reviewer",))
        return await ask_many(wiring)

    records = site.act(begin)
    page = open_as(f"{SEARCH}&at={records[66].id}-i1", name="ada", viewport=PHONE)
    page.context.clear_cookies()
    page.reload()
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#q")).to_have_value("place>=10")
    expect(page.locator(f"#{records[66].id}-i1")).to_be_in_viewport()


def test_rows_of_the_next_page_are_a_page_without_scripts(site: Site, open_as: Open) -> None:
    site.act(ask_many)
    page = open_as(SEARCH, viewport=PHONE, java_script_enabled=False)
    expect(page.locator("#found")).to_have_text("60 found")
    page.get_by_role("link", name="Load 50 more").click()
    expect(page.locator("#rows .item")).to_have_count(10)
