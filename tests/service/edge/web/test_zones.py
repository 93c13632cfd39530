"""Times in the reader's zone, with and without scripts: in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, place_of

Open = Callable[..., Page]


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_next_page_has_all_times_in_the_zone_of_the_browser(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(asked)
    page = open_as("/", timezone_id="Asia/Tokyo", viewport=viewport)
    page.goto(place_of(record))
    titles = page.locator("time[title]").evaluate_all("nodes => nodes.map((node) => node.title)")
    assert titles
    assert [title for title in titles if not title.endswith(" JST")] == []
    expect(page.locator("footer .zone")).to_have_text("Times are in Asia/Tokyo.")


def test_page_without_scripts_has_the_zone_that_its_reader_chose(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(place_of(record), java_script_enabled=False)
    expect(page.locator("footer .zone")).to_have_text("Times are in UTC.")
    page.goto("/me")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    page.locator("form", has=page.get_by_label("Time zone")).get_by_role("button").click()
    page.goto(place_of(record))
    expect(page.locator("footer .zone")).to_have_text("Times are in Asia/Tokyo.")
    expect(page.locator(".now .fallback")).to_have_text(re.compile(r"\d\d:\d\d JST if nobody answers"))


def test_unknown_zone_counts_as_utc(site: Site, open_as: Open) -> None:
    page = open_as("/", java_script_enabled=False)
    page.context.add_cookies([{"name": "sayso_zone", "value": "Mars/Olympus", "url": site.url}])
    page.goto("/")
    expect(page.locator("footer .zone")).to_have_text("Times are in UTC.")
