"""Fill the inbox: with made-up calls of many kinds, or with real ones from a file of JSON lines."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

from benchmarks.fills import SETTINGS
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from sayso.core.records.items import ItemDraft, ItemTool
from sayso.core.records.suspensions import ResumeSpec, RunRef
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolDefinition
from sayso.core.transitions.deciding import suspend
from service.assembly import assemble
from service.core.desk.changes import draft_suspension
from service.core.settings.limits import TENANT
from service.core.wiring import Wiring

_AT_ONCE = 16
_TOOLS = [f"{verb}_{thing}" for verb in ("refund", "send", "delete", "update") for thing in ("order", "mail", "row")]
_AGENTS = [f"agent-{number}" for number in range(8)]
_REVIEWERS: tuple[tuple[str, ...], ...] = ((), ("admin",), ("ben",), ("group:ops", "carla"))
_NOTE = "The customer says that the parcel came open and two of the six cups were broken; a photo is in the ticket."
_DAY_S = 86_400


class Call(NamedTuple):
    """One call that waits for a person."""

    tool: str
    args: JsonObject
    agent: str = "bench"
    reviewers: tuple[str, ...] = ()
    definition: ToolDefinition | None = None


def make_calls(count: int) -> Iterator[Call]:
    """Yield calls of twelve tools and eight agents, for four sets of reviewers."""
    for number in range(count):
        args: JsonObject = {"order": f"A-{number:06}", "amount": number % 5000, "currency": "EUR", "note": _NOTE}
        reviewers = _REVIEWERS[number // 7 % len(_REVIEWERS)]
        yield Call(_TOOLS[number % len(_TOOLS)], args, _AGENTS[number // 3 % len(_AGENTS)], reviewers)


def read_turns(path: Path, count: int) -> Iterator[Call]:
    """Yield the first calls of a file with turns: one JSON object a line, with `tools` and `calls`.

    Begins again at its end.
    """
    turns = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    pairs = [(turn, call) for turn in turns for call in turn["calls"]]
    for number in range(count if pairs else 0):
        turn, call = pairs[number % len(pairs)]
        found: JsonObject = next((one for one in turn["tools"] if one["name"] == call["name"]), {})
        definition = ToolDefinition(
            name=call["name"],
            description=str(found.get("description", "")),
            parameters=cast(JsonObject, found.get("parameters", {})),
        )
        yield Call(call["name"], call["arguments"], definition=definition)


async def fill_inbox(url: str, calls: Iterator[Call]) -> list[str]:
    """Suspend a run for each call; return the paths of the items."""
    paths: list[str] = []
    async with assemble(SETTINGS.model_copy(update={"redis_url": url})) as wiring:

        async def work() -> None:
            for call in calls:
                paths.append(f"/items/{await suspend_call(wiring, call)}/i1")

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return paths


async def suspend_call(wiring: Wiring, call: Call) -> str:
    """Suspend a run with one call that waits for 20 to 30 days; return its suspension."""
    if call.definition is not None:
        await wiring.runs.save_definitions([call.definition])
    digest = call.definition.digest if call.definition is not None else "0" * 64
    run_id = new_id("run")
    seconds = 20 * _DAY_S + int(run_id[-5:], 16) * 8 // 10
    item = ItemDraft(
        call_id="call_1",
        tool=ItemTool(name=call.tool, args=call.args, definition=digest),
        rule_id="bench",
        terms=RuleTerms(reviewers=call.reviewers, timeout_s=seconds),
    )
    run = RunRef(id=run_id, agent=call.agent, owner="bench", thread_id=run_id)
    draft = draft_suspension(TENANT, run, state=None).model_copy(
        update={"resume": ResumeSpec(mode="poll", resumer="calls")}
    )
    await wiring.desk.suspensions.create(draft.id, lambda at_ms: suspend(draft, (item,), at_ms))
    return draft.id
