"""Repeated requests through the desk and the real store: a no holds, and caps are exact."""

import asyncio
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import ResumeSpec
from sayso.core.records.tools import ToolCall, ToolDefinition
from service.channels.deciding import read_card
from service.core.store.precedents import Precedents
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.builders import person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - {id: held, tool: refund, action: request_approval, after_denial: deny}
  - {id: capped, tool: mail, action: request_approval, asks: {per_run: 3}}
  - {id: paced, tool: page, action: request_approval, asks: {per_minute: 10}}
"""
TOOLS = {name: ToolDefinition(name=name) for name in ("refund", "mail", "page", "other")}
ARGS: dict[str, Any] = {"customer": "D-1"}


@pytest.fixture
def rules() -> str:
    return POLICY


async def ask(wiring: Wiring, tool: str, args: dict[str, Any], *, calls: int = 1, **run: Any) -> Saved:
    asked = [
        ExternalCall(ToolCall(call_id="c", index=index, name=tool, args=args), TOOLS[tool]) for index in range(calls)
    ]
    return await wiring.desk.suspend(run_ref(**run), asked, ResumeSpec(mode="poll"))


async def decide(wiring: Wiring, saved: Saved, action: str = "deny", message: str = "never for D-1") -> None:
    given = {"action": action, "digest": saved.record.items[0].digest, "message": message}
    await wiring.desk.decide(saved.record.id, "i1", DecisionRequest.model_validate(given), person("anna"))


def only(saved: Saved) -> Item:
    return saved.record.items[0]


async def test_same_call_after_a_denial_is_denied_with_its_reason(wiring: Wiring) -> None:
    await decide(wiring, await ask(wiring, "refund", ARGS, thread_id="t1"))
    again = only(await ask(wiring, "refund", ARGS, thread_id="t1"))
    assert again.outcome is not None
    assert again.outcome.by.kind == "policy"
    assert "anna has denied this very call before: never for D-1." in (again.outcome.message or "")
    assert only(await ask(wiring, "refund", {"customer": "D-2"}, thread_id="t1")).open
    assert only(await ask(wiring, "refund", ARGS, thread_id="t2")).open
    assert only(await ask(wiring, "refund", ARGS, thread_id="t1", owner="other")).open


async def test_approval_or_a_denial_by_the_rules_is_no_denial(wiring: Wiring) -> None:
    await decide(wiring, await ask(wiring, "refund", ARGS, thread_id="t1"), "approve")
    assert only(await ask(wiring, "refund", ARGS, thread_id="t1")).open


async def test_last_denial_is_found_in_the_run_thread_or_of_the_agent(wiring: Wiring) -> None:
    await decide(wiring, await ask(wiring, "other", ARGS, thread_id="t1"), message="first")
    await decide(wiring, await ask(wiring, "other", ARGS, thread_id="t2"), message="last")
    record = (await ask(wiring, "other", ARGS, thread_id="t3")).record
    found = await wiring.part(Precedents).find_denial(record, record.items[0])
    assert found is not None
    assert (found.by, found.message) == ("anna", "last")
    another = (await ask(wiring, "other", ARGS, thread_id="t3", agent="another")).record
    assert await wiring.part(Precedents).find_denial(another, another.items[0]) is None


async def test_denied_near_call_is_found_in_the_run_thread_or_of_the_agent(wiring: Wiring) -> None:
    denied = await ask(wiring, "other", {**ARGS, "count": 1}, thread_id="t1")
    await decide(wiring, denied)
    for thread, agent, places in (("t2", "demo", 1), ("t1", "another", 1), ("t2", "another", 0)):
        near = (await ask(wiring, "other", {**ARGS, "count": 2}, thread_id=thread, agent=agent)).record
        assert len(await wiring.part(Precedents).find_near(near, near.items[0])) == places, (thread, agent)
    others = (await ask(wiring, "other", {**ARGS, "count": 2}, thread_id="t1", owner="other")).record
    assert await wiring.part(Precedents).find_near(others, others.items[0]) == []


async def test_every_channel_reads_the_last_denial_for_its_card(wiring: Wiring) -> None:
    await decide(wiring, await ask(wiring, "other", ARGS, thread_id="t1"))
    record = (await ask(wiring, "other", ARGS, thread_id="t1")).record
    card = await read_card(wiring, record, record.items[0])
    assert card.warnings[0].startswith("anna denied this call at 20")
    assert card.warnings[0].endswith(", in the same thread: never for D-1")


async def test_requests_of_a_run_beyond_the_cap_are_denied(wiring: Wiring) -> None:
    first = await ask(wiring, "mail", ARGS, thread_id="t1", calls=2)
    second = await ask(wiring, "mail", ARGS, thread_id="t1", calls=2)
    assert [one.open for one in (*first.record.items, *second.record.items)] == [True, True, True, False]
    denied = second.record.items[1].outcome
    assert denied is not None
    assert (denied.message or "").startswith("Rule capped asks people about 3 calls of a run at most")
    assert only(await ask(wiring, "mail", ARGS, thread_id="t2")).open


async def test_decided_requests_count_against_the_cap(wiring: Wiring) -> None:
    for _ in range(3):
        await decide(wiring, await ask(wiring, "mail", ARGS, thread_id="t1"), "approve")
    assert not only(await ask(wiring, "mail", ARGS, thread_id="t1")).open


async def test_requests_at_the_same_time_never_exceed_the_cap(wiring: Wiring) -> None:
    asked = await asyncio.gather(*(ask(wiring, "page", {"n": n}) for n in range(40)), return_exceptions=True)
    found = [only(one) for one in asked if isinstance(one, Saved)]
    assert sum(one.open for one in found) == 10
    assert all("a minute at most" in (one.outcome.message or "") for one in found if one.outcome is not None)
