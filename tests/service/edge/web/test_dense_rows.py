"""Rows of the inbox in Chromium: how many fit a screen, and what their two lines hold."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import ask_value, asked, make_ask
from tests.service.edge.web.test_gallery import check_page

LAPTOP: ViewportSize = {"width": 1440, "height": 900}
LARGE: ViewportSize = {"width": 1100, "height": 900}
Open = Callable[..., Page]

LONG = "Move the nightly export of all invoices to the archive bucket in Frankfurt and delete the local copy afterwards"
CALLS: tuple[tuple[str, JsonObject], ...] = (
    ("refund_payment", {"order_id": "A-10433", "amount": 129, "currency": "EUR", "customer": "Mara Lindqvist"}),
    ("restart_service", {}),
    ("create_ticket", {"title": LONG, "queue": "operations", "priority": 2}),
    (
        "run_shell",
        {"command": "rsync -a --delete /srv/export/ archive@frankfurt.example:/invoices/ && rm -r /srv/export"},
    ),
    ("c.deploy", {"image": "registry.example/shop/checkout:2026.11.3-rc4", "cluster": "prod-eu", "replicas": 12}),
    (
        "send_mail",
        {"to": "d.whitfield@example.com", "subject": "Your refund", "body": "Dear customer,\nit is on its way."},
    ),
)

AGENTS = ("support-bot", "operations-assistant-eu", "a")

READ_ROWS = """() => [...document.querySelectorAll("#rows .item")].map((row) => {
    const box = row.getBoundingClientRect(), shown = (one) => {
        const { top, bottom, width } = one.getBoundingClientRect();
        return width > 8 && top >= box.top && bottom <= box.bottom;
    };
    return {
        name: row.querySelector("h3").textContent,
        top: box.top, bottom: box.bottom,
        agent: shown(row.querySelector(".agent")) && row.querySelector(".agent").textContent.trim(),
        due: shown(row.querySelector(".due")),
        within: [...row.querySelectorAll(".main, .side")].every(shown),
    };
})"""


async def ask_calls(wiring: Wiring) -> None:
    """Eighteen different calls of three agents, some with a flag, due soon, today and later, and one for a value."""
    for place in range(18):
        tool, args = CALLS[place % len(CALLS)]
        terms: JsonObject = {"timeout_s": (300, 7_200, 400_000)[place % 3], "quorum": {"approve": 1 + place % 2}}
        terms |= {"fallback": {"action": "approve"}, "unattended_approval": True} if place % 5 == 0 else {}
        draft = make_ask(ToolDefinition(name=tool), args | {"attempt": place} if args else args, terms=terms)
        await asked(wiring, draft, agent=f"{AGENTS[place % 3]}-{place}")  # or alike items share a row
    await asked(wiring, ask_value())


@pytest.mark.parametrize(
    ("viewport", "least"), [(LAPTOP, 13), (LARGE, 13), (PHONE, 9)], ids=["laptop", "list alone", "phone"]
)
def test_rows_fit_the_screen_and_each_names_its_agent(
    site: Site, open_as: Open, viewport: ViewportSize, least: int
) -> None:
    site.act(ask_calls)
    page = open_as("/", viewport=viewport)
    expect(page.locator("#rows .item")).to_have_count(19)
    rows = page.evaluate(READ_ROWS)
    bar = 56 if viewport is PHONE else 0  # of the pages, at the bottom
    assert sum(row["bottom"] <= viewport["height"] - bar for row in rows) >= least
    for row in rows:
        assert str(row["agent"]).startswith((*AGENTS, "support")), row
        assert row["due"], row
        assert row["within"], row
    check_page(page, f"rows at {viewport['width']} px")


def test_second_line_holds_what_the_first_one_cuts(site: Site, open_as: Open) -> None:
    site.act(lambda wiring: asked(wiring, make_ask(ToolDefinition(name="run_shell"), CALLS[3][1])))
    page = open_as("/", viewport=LAPTOP)
    heading, row = page.locator("#rows h3").bounding_box(), page.locator("#rows .main").bounding_box()
    assert heading is not None
    assert row is not None
    assert heading["height"] >= row["height"] >= 40  # two lines of 20 px, both of the heading


def test_values_stand_before_their_keys(site: Site, open_as: Open) -> None:
    args: JsonObject = {"city": "Bern", "nights": 2, "room": "double"}
    site.act(lambda wiring: asked(wiring, make_ask(ToolDefinition(name="book_room"), args)))
    page = open_as("/", viewport=LARGE)
    expect(page.locator("#rows h3")).to_have_text("book_room Bern city 2 nights")
    expect(page.locator("#rows .second")).to_contain_text("double room")


def test_row_without_arguments_has_two_lines(site: Site, open_as: Open) -> None:
    site.act(lambda wiring: asked(wiring, make_ask(ToolDefinition(name="restart_service"), {})))
    page = open_as("/", viewport=PHONE)
    expect(page.locator("#rows h3")).to_have_text("restart_service no arguments")
    expect(page.locator("#rows .side .agent")).to_be_visible()


def test_value_that_is_wanted_is_never_cut(site: Site, open_as: Open) -> None:
    long = ask_value(args={"hotel_name": LONG, "location": LONG})
    site.act(lambda wiring: asked(wiring, long))
    page = open_as("/", viewport=PHONE)
    expect(page.locator("#rows .wanted")).to_have_text("wants: loyalty_code")
    expect(page.locator("#rows .wanted")).to_be_in_viewport(ratio=1)
