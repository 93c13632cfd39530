"""Drive an agent of another framework in this process: people approve or deny as is said, and nothing is saved."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sayso.errors import SaysoError
from sayso.policy.engine import ASK_EVERYTHING
from sayso.records.events import Event
from sayso.records.items import Doubt, ItemDraft
from sayso.records.suspensions import RunRef
from sayso.runner.batches import PlannedCall, Resumption
from sayso.runner.framework_loop import FrameworkEnd, FrameworkJournal, drive_framework
from sayso.runner.protocol import Asked, FrameworkAgent, FrameworkState, open_gate
from tests.sayso.runners import approve

Rule = Callable[[ItemDraft], Resumption]
LONG_ID = "thought-" * 500
"""An id in which a model's endpoint has hidden more than a name."""


class _Journal(FrameworkJournal):
    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: FrameworkState | None
    ) -> Mapping[int, str]:
        return {one.call.index: f"key{one.call.index}" for one in calls}

    async def confirm(self) -> None:
        """Nobody else has the run."""

    async def checkpoint(self, state: FrameworkState, events: Sequence[Event]) -> None:
        """Keep nothing."""

    def unfinished(self) -> Mapping[int, Doubt]:
        return {}


async def play(bot: FrameworkAgent, rule: Rule = approve, later: FrameworkAgent | None = None) -> dict[str, Any]:
    """Return what was asked, as `[call id, arguments]`, and how the run ended; what stops it is its error.

    With `later` that agent goes on with the run.
    """
    asked: list[Any] = []
    try:
        end = await _play(bot, rule, asked, later or bot)
    except SaysoError as error:
        return {"asked": asked, "error": error.message}
    return {"asked": asked, "result": end.end.result, "error": end.end.error}


async def _play(bot: FrameworkAgent, rule: Rule, asked: list[Any], later: FrameworkAgent) -> FrameworkEnd:
    origin, run = bot.framework.origin, RunRef(id="run_1", agent=bot.name, owner="o", thread_id="t")
    state = FrameworkState(agent=bot.name, framework=origin.framework, state_schema=origin.state_schema, text="Play.")
    presets: dict[int, Resumption] = {}
    while True:
        rest = await drive_framework(bot, run, state, presets, policy=ASK_EVERYTHING, journal=_Journal())
        if isinstance(rest, FrameworkEnd):
            return rest
        asked += [[one.call_id, one.tool.args] for one in rest.drafts]
        state = FrameworkState.model_validate_json(rest.state.model_dump_json())
        bot, presets = later, {one.index: rule(one) for one in rest.drafts}


async def find_callers(bot: FrameworkAgent) -> list[list[str | None]]:
    """Return the tool and the sub-agent of each call that the agent asks for first."""
    with open_gate(None):
        asked = await bot.framework.begin("Play.")
    return [[one.name, one.subagent] for one in asked.calls] if isinstance(asked, Asked) else []


def refusal(make: Callable[[], Any]) -> str | None:
    """Return the words in which something is refused, or None where it is not."""
    try:
        make()
    except SaysoError as error:
        return error.message
    return None


def say(told: Mapping[str, Any]) -> None:
    """Print what came of it."""
    print(json.dumps(told, default=str))
