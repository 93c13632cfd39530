"""A secret argument is found nowhere outside its field: not on pages before "Show", in the trail, or in logs."""

from collections.abc import Callable
from typing import Any

import structlog
from playwright.sync_api import Page, expect

from sayso.canonical_json import JsonObject, canonical_json
from sayso.policy.asking import build_item
from sayso.policy.engine import ASK_EVERYTHING, PolicyEvent
from sayso.records.suspensions import SuspensionRecord
from sayso.records.tool_calls import ToolCall, ToolDefinition
from sayso.text.redaction import MASK
from service.settings import Settings
from service.wiring import Wiring
from tests.service.web.reading import read_to_the_end
from tests.service.web.sites import Site, Visit, visit
from tests.service.web.stories import REFUND_ARGS, asked, decide, finish, make_ask, place_of

CANARY = "s3cret-canary-7c1f"
ARGS: JsonObject = {**REFUND_ARGS, "order_id": CANARY, "note": f"use {CANARY}"}
TERMS: dict[str, Any] = {"secrets": ["order_id"]}


async def ask(wiring: Wiring, reason: str = f"For {CANARY}", **run: str) -> SuspensionRecord:
    """Return a suspension whose order is secret, and quoted in the prompt."""
    prompt = {"title": f"With {CANARY}", "body": f"Body {CANARY}"}
    return await asked(wiring, make_ask(args=ARGS, terms=TERMS, prompt=prompt, reason=reason), **run)


async def read_everything(anna: Visit, record: SuspensionRecord) -> str:
    places = ("/", place_of(record), f"/runs/{record.run.id}", "/decided", "/runs", f"/decided?q={CANARY[:6]}")
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
        assert "Edited arguments" not in masked
        with structlog.testing.capture_logs() as logs:
            page = await anna.send(place_of(record), 200, show="only")
        assert CANARY in page
        assert "Edited arguments" in page
        shown = [one for one in logs if one["event"] == "secrets_shown"]
        assert [(one["reviewer"], one["suspension"], one["item"]) for one in shown] == [("anna", record.id, "i1")]
        assert CANARY not in repr(logs)
        assert CANARY not in await anna.read(place_of(record))


async def test_approve_works_without_showing_secrets(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask(anna.wiring)
        await anna.send(place_of(record), answer="approve", digest=record.items[0].digest)
        after = (await anna.wiring.desk.suspensions.read(record.id)).record
        assert after.items[0].outcome is not None
        assert after.items[0].tool.args == ARGS


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
    page.locator(".begin").click()
    page.get_by_label("amount").fill("7")
    read_to_the_end(page)
    page.get_by_role("button", name="Approve edited arguments").click()
    expect(page.get_by_role("heading", name="anna approved this with edited arguments")).to_be_visible()
    expect(page.get_by_text(CANARY)).to_have_count(0)
