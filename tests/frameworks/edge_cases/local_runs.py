"""Drives an agent of another framework in this process, with decisions by a rule and without a store."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sayso.core.policy.engine import ASK_EVERYTHING, Policy
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import Progress, RunRef
from sayso.errors import SaysoError
from sayso.runner.batches import Resumption
from sayso.runner.execution import use_executor
from sayso.runner.local import MemoryJournal
from sayso.runner.loop import drive
from sayso.runner.protocol import FrameworkAgent, FrameworkState, FrameworkTurn, RunEnded
from sayso.runner.runs import FrameworkRun
from tests.sayso.runners import approve

Rule = Callable[[ItemDraft], Resumption]
LONG_ID = "thought-" * 500
"""An id in which a model endpoint has hidden data."""


async def play(
    bot: FrameworkAgent, rule: Rule = approve, later: FrameworkAgent | None = None, text: str = "Play."
) -> dict[str, Any]:
    """Return the reviewed calls, as `[call id, arguments]`, and the end of the run or its error.

    With `later`, that agent resumes the run.
    """
    asked: list[ItemDraft] = []
    try:
        end = await _play(bot, rule, asked, later or bot, text=text)
    except SaysoError as error:
        return {"asked": _show(asked), "error": error.message}
    return {"asked": _show(asked), "result": end.result, "error": end.error}


async def play_judged(bot: FrameworkAgent, policy: Policy) -> list[Any]:
    """Return what the rules saw of the model calls before each turn with calls, and the actions on these calls."""
    events: list[Event] = []
    await _play(bot, approve, [], bot, policy, events)
    seen: list[Any] = []
    for event in events:
        if event.type == EventType.TOOL_BATCH_STARTED:
            progress: Any = event.data["progress"]
            seen.append([progress["usage"]])
        elif event.type == EventType.POLICY_DECISION:
            seen[-1].append(event.data["action"])
    return seen


def _show(asked: Sequence[ItemDraft]) -> list[Any]:
    return [[one.call_id, one.tool.args] for one in asked]


async def _play(
    bot: FrameworkAgent,
    rule: Rule,
    asked: list[ItemDraft],
    later: FrameworkAgent,
    policy: Policy = ASK_EVERYTHING,
    events: list[Event] | None = None,
    text: str = "Play.",
) -> RunEnded[FrameworkState]:
    origin, run = bot.framework.origin, RunRef(id="run_1", agent=bot.name, owner="o", thread_id="t")
    state = FrameworkState(
        agent=bot.name,
        framework=origin.framework,
        state_schema=origin.state_schema,
        text=text,
        progress=Progress(usage=()),
    )
    outcomes: dict[int, Resumption] = {}
    while True:
        journal: MemoryJournal[FrameworkState] = MemoryJournal(run.id)
        bot_run = FrameworkRun(bot, run, state)
        rest = await drive(bot_run, policy=policy, journal=journal, outcomes=outcomes)
        if events is not None:
            events += (*journal.events, *rest.events)
        if isinstance(rest, RunEnded):
            return rest
        asked += rest.drafts
        state = FrameworkState.model_validate_json(rest.state.model_dump_json())
        bot, outcomes = later, {one.index: rule(one) for one in rest.drafts}


async def find_callers(bot: FrameworkAgent) -> list[list[str | None]]:
    """Return the tool and the subagent of each call in the first turn."""
    with use_executor(None):
        asked = await bot.framework.begin("Play.")
    return [[one.name, one.subagent] for one in asked.calls] if isinstance(asked, FrameworkTurn) else []


def refusal(make: Callable[[], Any]) -> str | None:
    """Return the message of the error, or None."""
    try:
        make()
    except SaysoError as error:
        return error.message
    return None


def print_json(results: Mapping[str, Any]) -> None:
    """Print the results as all that standard output gets: CrewAI's threads may print after them."""
    print(json.dumps(results, default=str), flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
