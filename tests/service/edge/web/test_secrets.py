"""A secret argument is found nowhere outside its field: not on pages before "Show", in the trail, or in logs."""

from collections.abc import Callable
from typing import Any

import pytest
import structlog
from httpx import ASGITransport, AsyncClient
from playwright.sync_api import Locator, Page, expect

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.policy.decisions import build_item
from sayso.core.policy.engine import ASK_EVERYTHING
from sayso.core.policy.events import PolicyEvent
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.text.redaction import MASK
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.edge.web.sessions import cookie_name
from tests.browser import PHONE
from tests.service.edge.web.reading import approve_edit, begin_edit, read_to_the_end
from tests.service.edge.web.sites import Site, Visit, let_in, visit
from tests.service.edge.web.stories import REFUND_ARGS, asked, decide, finish, make_ask, place_of
from tests.service.edge.web.test_gallery import check_page

CANARY = "s3cret-canary-7c1f"
ARGS: JsonObject = {**REFUND_ARGS, "order_id": CANARY, "note": f"use {CANARY}"}
TERMS: dict[str, Any] = {"secrets": ["order_id"]}


async def ask(wiring: Wiring, reason: str = f"For {CANARY}", **run: str) -> SuspensionRecord:
    """Return a suspension whose order is secret, and quoted in the prompt."""
    prompt = {"title": f"With {CANARY}", "body": f"Body {CANARY}"}
    return await asked(wiring, make_ask(args=ARGS, terms=TERMS, prompt=prompt, reason=reason), **run)


async def read_everything(anna: Visit, record: SuspensionRecord) -> str:
    places = ("/", place_of(record), f"/runs/{record.run.id}", "/history", "/runs", f"/history?q={CANARY[:6]}")
    return "\n".join([await anna.read(place) for place in places])


async def read_trail(wiring: Wiring, record: SuspensionRecord) -> str:
    entries = await wiring.runs.trail(record.run.id)
    return canonical_json([entry.data for entry in entries]).decode()


async def test_canary_is_nowhere_before_it_is_shown(settings: Settings) -> None:
    with structlog.testing.capture_logs() as logs:
        async with visit(settings) as anna:
            record = await ask(anna.wiring, title=f"Run with {CANARY}", words=f"I use {CANARY}")
            page = await anna.read(place_of(record))
            assert MASK in page
            assert f"use {MASK}" in page
            assert CANARY not in await read_everything(anna, record)
            edited: JsonObject = {**ARGS, "order_id": f"new-{CANARY}"}
            decided = await decide(anna.wiring, record, "approve", args=edited, message=f"ok {CANARY}")
            await finish(anna.wiring, decided, {"echo": CANARY})
            assert CANARY not in await read_everything(anna, record)
    assert CANARY not in repr(logs)


async def test_trail_keeps_no_secret_argument(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask(anna.wiring, reason="Needs a person")
        await decide(anna.wiring, record, "approve", args={**ARGS, "amount": 8}, message=f"ok {CANARY}")
        trail = await read_trail(anna.wiring, record)
        assert '"amount":8' in trail
        assert f'"order_id":"{MASK}"' in trail
        assert CANARY not in trail


async def test_reviewer_shows_secrets_and_the_log_records_it(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask(anna.wiring)
        masked = await anna.read(place_of(record))
        assert 'class="begin"' not in masked
        with structlog.testing.capture_logs() as logs:
            page = await anna.send(place_of(record), 200, show="only")
        assert CANARY in page
        assert 'class="begin"' in page
        shown = [one for one in logs if one["event"] == "secrets_shown"]
        assert [(one["reviewer"], one["suspension"], one["item"]) for one in shown] == [("anna", record.id, "i1")]
        assert CANARY not in repr(logs)
        assert CANARY not in await anna.read(place_of(record))


async def test_approve_is_refused_until_secrets_were_shown(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask(anna.wiring)
        digest = record.items[0].digest
        masked = await anna.read(place_of(record))
        assert "Show the secret values first" in masked
        assert 'class="approval"' not in masked
        page = await anna.send(place_of(record), 422, answer="approve", digest=digest)
        assert "Show the secret values before you approve. Nothing was changed." in page
        assert CANARY not in page
        forged = await anna.send(place_of(record), 422, answer="approve", digest=digest, show="also")
        assert CANARY in forged, "now they are shown"
        assert ">Approve EUR 250.00<" in forged
        await anna.send(place_of(record), answer="approve", digest=digest, show="also")
        after = (await anna.wiring.desk.suspensions.read(record.id)).record
        assert after.items[0].outcome is not None
        assert after.items[0].tool.args == ARGS


async def test_denial_needs_no_secrets_shown(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask(anna.wiring)
        await anna.send(place_of(record), answer="deny", digest=record.items[0].digest)
        assert "anna denied this" in await anna.read(place_of(record))


async def test_values_shown_to_one_reviewer_are_not_shown_to_another(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask(anna.wiring)
        await anna.send(place_of(record), 200, show="only")
        cookies = {cookie_name(settings): await let_in(settings, "ben")}
        async with AsyncClient(transport=ASGITransport(anna.app), base_url=settings.public_url, cookies=cookies) as own:
            ben = Visit(own, anna.wiring, anna.app)
            await ben.send(place_of(record), 422, answer="approve", digest=record.items[0].digest)


def test_item_terms_name_the_secrets_of_the_schema() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "login": {"type": "object", "properties": {"password": {"type": "string", "format": "password"}}},
            "keys": {"type": "array", "items": {"type": "object", "properties": {"k": {"writeOnly": True}}}},
        },
    }
    definition = ToolDefinition(name="connect", parameters=schema)
    decision = ASK_EVERYTHING.judge(PolicyEvent(run_id="r", agent="a", tool_name="connect"))
    call = ToolCall(call_id="c", index=0, name="connect", args={})
    assert build_item(definition, call, decision).terms.secrets == ("login.password", "keys[].k")


def test_arguments_can_be_edited_after_they_are_shown(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(ask)
    page = open_as(place_of(record))
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text(CANARY).first).to_be_visible()
    read_to_the_end(page)
    begin_edit(page)
    page.get_by_label("amount").fill("7")
    approve_edit(page)
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()
    expect(page.get_by_text(CANARY)).to_have_count(0)


def approve(page: Page) -> Locator:
    return page.locator(".approval .wide")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_one_press_shows_secrets_and_brings_approve(site: Site, open_as: Callable[..., Page], scripts: bool) -> None:
    page = open_as(place_of(site.act(ask)), viewport=PHONE, java_script_enabled=scripts)
    expect(approve(page)).to_have_count(0)
    expect(page.get_by_text(CANARY)).to_have_count(0)
    if scripts:
        check_page(page, "masked item")
    page.get_by_role("button", name="Show the secret values first").click()
    expect(page.get_by_text(CANARY).first).to_be_visible()
    if scripts:
        read_to_the_end(page)
    approve(page).click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_long_secret_is_read_to_the_end_after_it_is_shown(site: Site, open_as: Callable[..., Page]) -> None:
    long: JsonObject = {**REFUND_ARGS, "order_id": "\n".join(f"line {place}" for place in range(400))}
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, make_ask(args=long, terms=TERMS)))))
    page.wait_for_function("Object.keys(sessionStorage).some((key) => key.startsWith('read '))")
    page.get_by_role("button", name="Show the secret values first").click()
    expect(approve(page)).to_be_disabled()
    read_to_the_end(page)
    expect(approve(page)).to_be_enabled()
