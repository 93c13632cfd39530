"""The plan of each user task, made of the user's words before the agent has read anything.

AgentDojo's calls of the task stand for the steps that the agent would plan. Of their arguments the plan keeps only
values that the user's words contain literally; every other value has to be read first, or is the agent's own wording.

- Calls that the policy allows are in the plan with any arguments.
- Calls that it holds run without asking if the words contain all their arguments. A plan with only one such call would
  cost as many questions as it saves, so that this call is asked about, too.
- Other calls that it holds are asked about, with the arguments that the words contain.
- Everything else is denied.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from benchmarks.agentdojo.plays import CallPlayed, IsHeld
from sayso.core.canonical_json import JsonObject
from sayso.core.records.permissions import Plan

LASTS_S = 3_600
MOST_CALLS = 100
LEAST_SILENT = 2


class UserTask(NamedTuple):
    """The words of a user, and the calls that fulfil them."""

    words: str
    calls: Sequence[Mapping[str, Any]]


def draft_plan(task: UserTask, is_held: IsHeld) -> Plan:
    """Return the plan of a task."""
    held = [call for call in task.calls if is_held(CallPlayed(**call, injected=False, ended="ran", changed=False))]
    allowed = dict.fromkeys(call["tool"] for call in task.calls if call not in held)
    silent = [call for call in held if all(is_known(value, task.words) for value in call["args"].values())]
    if len(silent) < LEAST_SILENT:
        silent = []
    tools: list[JsonObject] = [{"tool": tool, "free": ["args"]} for tool in allowed]
    for call in held:
        limits = {"count": 1} if call in silent else {"ask": True}
        one = {"tool": call["tool"], **_limit_args(call["args"], task.words), **limits}
        if call in silent or one not in tools:
            tools.append(one)
    return Plan.model_validate({"for_s": LASTS_S, "count": MOST_CALLS, "outside": "deny", "tools": tools})


def is_known(value: JsonValue, words: str) -> bool:
    """Whether the user's words contain a value literally: a number, whole words, or each element of a list."""
    if isinstance(value, list):
        return bool(value) and all(is_known(one, words) for one in value)
    if isinstance(value, str):
        return value != "" and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", words, re.IGNORECASE) is not None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return any(float(number) == value for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", words))


def _limit_args(args: JsonObject, words: str) -> JsonObject:
    known = {f"args.{name}": value for name, value in args.items() if is_known(value, words)}
    free: list[JsonValue] = [f"args.{name}" for name in args if f"args.{name}" not in known]
    return {"equal": known, "free": free}
