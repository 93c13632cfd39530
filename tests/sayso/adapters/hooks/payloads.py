"""Payloads of hooks as the agents' public pages describe them, and a hook in front of a desk in this process."""

import json
from typing import Any

from sayso.adapters.hooks.calls import HookCall
from sayso.adapters.hooks.formats import read_call, write_answer
from sayso.adapters.hooks.judging import HookOptions, judge
from sayso.core.canonical_json import JsonObject
from sayso.testing import InProcessDesk

PROJECT = "/home/ada/shop"


def claude(command: str = "npm publish", call_id: str | None = "toolu_01", **more: Any) -> JsonObject:
    """Return what Claude Code sends before it runs a command."""
    payload: JsonObject = {
        "session_id": "0d5f",
        "transcript_path": f"{PROJECT}/.claude/0d5f.jsonl",
        "cwd": PROJECT,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "Publish the package"},
        "tool_use_id": call_id,
    }
    return payload | more


def read(payload: JsonObject, agent: str = "claude-code") -> HookCall:
    return read_call(agent, json.dumps(payload).encode())


OPTIONS = HookOptions(wait_s=1)


WAITING = HookOptions(wait_s=1)


def ask(desk: InProcessDesk, payload: JsonObject, agent: str = "claude-code", options: HookOptions = WAITING) -> Any:
    """Return the answer of a hook to one payload."""
    call = read(payload, agent)
    with desk.client() as client:
        return write_answer(call, client.run(judge(call, options, client.retry_policy)))


def decision(answer: Any) -> tuple[str, str]:
    """Return the decision and the reason of an answer to PreToolUse."""
    output = answer["hookSpecificOutput"]
    return output["permissionDecision"], output["permissionDecisionReason"]
