"""Ordinary writing raises no warning and keeps its signs; a hidden character is asked about: in a real browser."""

from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end, settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of

Open = Callable[..., Page]
NOTE = ToolDefinition(name="add_note")
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
ORDINARY: JsonObject = {
    "price": "4.890,00\xa0€",
    "time": "3:05\u202fPM",
    "mail": "Dear Ann,\r\n\r\nit is on its way.\r\n",
    "persian": "می\u200cخواهم",
    "japanese": "日\u3000時",
}


async def ask(args: JsonObject, wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a note."""
    return await asked(wiring, make_ask(NOTE, args))


@SIZES
def test_ordinary_texts_keep_signs_without_a_warning(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(partial(ask, ORDINARY))
    page = open_as("/", viewport=viewport)
    expect(page.locator(f"[id='{record.id}-i1']")).to_be_visible()
    expect(page.locator("#rows .flag")).to_have_count(0)
    page.goto(place_of(record))
    for sign in ("U+00A0", "U+202F", "U+000D", "U+200C", "U+3000"):
        expect(page.locator("main")).to_contain_text(sign)
    expect(page.get_by_text("no place here")).to_have_count(0)
    read_to_the_end(page)
    settle(page)
    page.locator(".approval .wide").click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


@SIZES
def test_hidden_character_is_flagged_and_asked_about(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(partial(ask, {"to": "pay\u200bpal"}))
    page = open_as("/", viewport=viewport)
    expect(page.locator("#rows .flag")).to_have_text("hidden characters")
    page.goto(place_of(record))
    expect(page.get_by_text("1 hidden character has no place here.")).to_be_visible()
    read_to_the_end(page)
    settle(page)
    page.locator(".approval .wide").click()
    expect(page.locator(".armed")).to_be_visible()
