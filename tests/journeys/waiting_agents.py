"""Agents whose one tool waits until it is let go, so that a worker can be killed while the call is in flight."""

import os
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from launch.stops import wait_until
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import CallContext, Tool, tool
from service.core.settings import load

BEGUN, LET_GO = "begun.txt", "let-go"
PATIENCE_S = 45


def _wait(call: CallContext) -> JsonValue:
    """Write down who began which call, then wait to be let go."""
    home = load().home
    with (home / BEGUN).open("a", encoding="utf-8") as begun:
        begun.write(f"{call.run_id} {os.getpid()} {call.idempotency_key} {call.attempt}\n")
    return "let go" if wait_until((home / LET_GO).exists, PATIENCE_S) else "forgotten"


@tool(idempotent=True)
def wait_again(call: CallContext) -> JsonValue:
    """Wait; may be begun again."""
    return _wait(call)


@tool
def wait_once(call: CallContext) -> JsonValue:
    """Wait; must not be begun twice."""
    return _wait(call)


class Begun(NamedTuple):
    """One beginning of a call."""

    pid: int
    key: str
    attempt: int


def begun_in(home: Path, run_id: str) -> list[Begun]:
    """Return how often a run's call was begun, and by whom."""
    if not (home / BEGUN).exists():
        return []
    lines = [line.split() for line in (home / BEGUN).read_text(encoding="utf-8").splitlines()]
    return [Begun(int(pid), key, int(attempt)) for run, pid, key, attempt in lines if run == run_id]


def _agent(name: str, waiting: Tool) -> Agent:
    turns = [
        ModelTurn(calls=(RequestedCall(call_id="call_0", name=waiting.name, args_json="{}"),)),
        ModelTurn(text="Done."),
    ]
    return Agent(name=name, instructions="Wait.", tools=(waiting,), model=ScriptedModel(turns))


again = _agent("again", wait_again)
once = _agent("once", wait_once)
