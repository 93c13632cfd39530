"""Lists and links of a chat's tools on a run's page: mails, accounts and places as tables; nothing opens by itself."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.redaction import MASK
from service.core.settings import Settings
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import asked
from tests.service.edge.web.test_secrets import CANARY, ask

MAILS = [
    {"id": "m1", "from": "ann@example.com", "subject": "Invoice 17", "unread": True},
    {"id": "m2", "from": "ben@example.com", "subject": "Re: lunch", "unread": False},
]
ACCOUNTS = {"accounts": [{"name": "Checking", "balance": 1234.5}, {"name": "Savings", "balance": 90}], "total": 2}
CAFE = {"name": "Café Bar", "rating": 4.5, "categories": ["coffee", "bar"]}
PLACES = {"businesses": [CAFE, {"name": "Ann’s", "rating": 3, "categories": ["bar"]}]}
SAFE = "https://maps.example.com/place?id=7"
UNSAFE = [
    "http://maps.example.com/",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//maps.example.com/",
    "https://bank.example.com@evil.example/",
    "https://maps.example.com\\@evil.example/",
    "https://m\u0430ps.example.com/",
    "https://maps.example.com/\u202emoc",
    "https://maps.example.com/ x",
    "https://maps.example.com:port/",
    "https:///maps",
    "https://" + "a" * 2_000 + ".example/",
    '"><img src=x onerror=alert(1)>',
]


def envelope(kind: str, response: Any, **more: Any) -> dict[str, Any]:
    """Return a tool's output as a chat sends it."""
    return {"response_type": kind, "agent_name": "Bank", "friendly_name": kind, "response": response, **more}


async def tell(wiring: Wiring, *envelopes: dict[str, Any]) -> str:
    """Report the outputs of a run of its own, and return the path of its page."""
    return await report(wiring, await asked(wiring), *envelopes)


async def report(wiring: Wiring, record: SuspensionRecord, *envelopes: dict[str, Any]) -> str:
    """Report the outputs of this run, and return the path of its page."""
    events = [ExternalEvent(seq, None, event) for seq, event in enumerate(envelopes, start=1)]
    await wiring.part(ExternalEvents).add(record.run.id, "agent", "tool_responses", events)
    return f"/runs/{record.run.id}"


async def test_links_that_hide_where_they_lead_are_text(settings: Settings) -> None:
    async with visit(settings) as site:
        page = await site.read(await tell(site.wiring, *(envelope("open_tab", {"url": url}) for url in UNSAFE)))
    assert page.count("The agent asks to open") == len(UNSAFE)
    assert "noreferrer" not in page
    assert 'href="javascript' not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("response", [{"url": 7}, {"url": ["https://a.example"]}, {"url": None}, "text", [1], None])
async def test_other_windows_open_nothing(settings: Settings, response: Any) -> None:
    async with visit(settings) as site:
        shown = await site.read(await tell(site.wiring, envelope("open_window", response)))
    assert "noreferrer" not in shown


async def test_hidden_outputs_have_no_link(settings: Settings) -> None:
    async with visit(settings) as site:
        hidden = envelope("open_window", {"url": SAFE}, display_response=False)
        shown = await site.read(await tell(site.wiring, hidden, envelope("other", {"url": SAFE})))
    assert "The agent asks to open" not in shown


async def test_hostile_lists_are_escaped_and_few(settings: Settings) -> None:
    evil: list[Any] = [{"<script>alert(1)</script>": "<b>", "\u202ex": {"deep": [[1]]}}, {"a": None}, {}]
    lists = [envelope("list", {"rows": evil[:2]}) for _ in range(25)]
    values: list[Any] = [evil, [[]], [1, {}], {"rows": []}, [{"a": "x" * 9_000}]]
    others = [envelope("list", value) for value in values]
    async with visit(settings) as site:
        page = await site.read(await tell(site.wiring, *lists, *others))
    assert page.count('class="lists"') == 20
    assert "<script>alert" not in page
    assert "\u202e" not in page


async def test_secrets_are_masked_in_lists_and_links(settings: Settings) -> None:
    lists = envelope("mails", [{"text": f"use {CANARY}"}, {"text": "other"}])
    async with visit(settings) as site:
        record = await ask(site.wiring)
        path = await report(site.wiring, record, lists, envelope("open_tab", {"url": f"https://a.example/{CANARY}"}))
        page = await site.read(path)
    assert CANARY not in page
    assert f"use {MASK}" in page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_lists_are_tables_and_links_wait_for_a_press(
    site: Site, open_as: Callable[..., Page], viewport: Any, scheme: Any
) -> None:
    outputs = [envelope("mails", MAILS), envelope("accounts", ACCOUNTS), envelope("places", PLACES)]
    path = site.act(lambda wiring: tell(wiring, *outputs, envelope("open_window", {"url": SAFE})))
    page = open_as("/", viewport=viewport, color_scheme=scheme)
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))  # noqa: PLW0108 - Playwright marks the function
    page.context.route("https://maps.example.com/**", lambda route: route.fulfill(body="a map"))
    page.goto(path)
    tables = page.locator("#timeline table.like")
    expect(tables).to_have_count(3)
    expect(tables.first).to_contain_text("Invoice 17")
    expect(tables.nth(1)).to_contain_text("Checking")
    expect(tables.nth(2)).to_contain_text("Café Bar")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not [request for request in requests if "maps.example.com" in request.url]
    page.get_by_role("link", name=SAFE).click()
    page.wait_for_url(SAFE)
    (opened,) = [request for request in requests if request.url == SAFE]
    assert "referer" not in opened.headers
