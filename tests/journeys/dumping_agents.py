"""An agent whose one tool writes down what it sees of its environment and of that of its parent."""

import os
from pathlib import Path

from pydantic import JsonValue

from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import tool
from service.core.settings import load

SEEN = "seen.txt"


@tool(idempotent=True)
def dump() -> JsonValue:
    """Write down every environment that this process can read."""
    environs = [Path(f"/proc/{pid}/environ").read_bytes() for pid in ("self", os.getppid())]
    text = "\n".join([*(f"{name}={value}" for name, value in os.environ.items()), *map(os.fsdecode, environs)])
    (load().home / SEEN).write_text(text, errors="surrogateescape")
    return "seen"


_TURNS = [ModelTurn(calls=(RequestedCall(call_id="call_0", name="dump", args_json="{}"),)), ModelTurn(text="Done.")]
dumping = Agent(name="dumping", instructions="Dump.", tools=(dump,), model=ScriptedModel(_TURNS))
