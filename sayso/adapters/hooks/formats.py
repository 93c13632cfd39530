"""Formats of hooks: the JSON that each coding agent sends before a tool runs, and the JSON that it reads as answer."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.records.tools import check_tool_name
from sayso.errors import InvalidInput, TooLarge

MAX_INPUT_BYTES = 1_000_000
"""The largest input of a hook. A call with more cannot be reviewed."""

SHELL = "Bash"
"""The name of each agent's shell at the desk, so that one rule is for all agents."""

_FOREIGN = "mcp__"
"""The begin of the names of MCP servers' tools, whose arguments are as their server takes them."""

Decision = Literal["allow", "deny", "ask", "none"]


class Verdict(NamedTuple):
    """The answer to a hook. With `none` the agent goes on as if it had no hook."""

    decision: Decision
    reason: str = ""
    args: JsonObject | None = None
    """The arguments to run with, if a reviewer changed them."""


@dataclass(frozen=True)
class HookCall:
    """A tool call that an agent is about to make.

    `native` are the arguments as the agent sent them, `place` those that the hook adds, and `note` what the agent says
    about the call: reviewers read it above the call, because the same call may have another note the next time.
    """

    agent: str
    event: str
    session: str
    call_id: str | None
    tool: str
    native: JsonObject
    place: JsonObject
    note: JsonObject

    @property
    def args(self) -> JsonObject:
        """The arguments that rules and reviewers see."""
        return {name: value for name, value in self.native.items() if name not in self.note} | self.place

    def restore(self, approved: JsonObject) -> JsonObject | None:
        """Return approved arguments as the agent takes them, or None if they are its own.

        Raises `InvalidInput` if a reviewer changed where the call runs, which a hook cannot change.
        """
        if approved == self.args:
            return None
        if any(approved.get(name) != value for name, value in self.place.items()):
            raise InvalidInput(f"a reviewer changed where {self.tool} runs, and a hook cannot. Deny the call instead.")
        return {name: value for name, value in approved.items() if name not in self.place} | self.note


class _Payload(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


_Id = Annotated[str, Field(min_length=1, max_length=500)]


class _ToolUse(_Payload):
    """What Claude Code and Codex send."""

    hook_event_name: Literal["PreToolUse", "PermissionRequest"]
    session_id: _Id
    tool_name: _Id
    tool_input: dict[str, JsonValue]
    tool_use_id: _Id | None = None
    cwd: str


def _read_tool_use(agent: str, payload: JsonObject) -> HookCall:
    sent = _ToolUse.model_validate(payload)
    is_noted = sent.tool_name == SHELL and "description" in sent.tool_input
    place: JsonObject = {"cwd": sent.cwd, "project": os.environ.get("CLAUDE_PROJECT_DIR") or sent.cwd}
    return HookCall(
        agent=agent,
        event=sent.hook_event_name,
        session=sent.session_id,
        call_id=sent.tool_use_id,
        tool=sent.tool_name,
        native=sent.tool_input,
        place={} if sent.tool_name.startswith(_FOREIGN) else place,
        note={"description": sent.tool_input["description"]} if is_noted else {},
    )


def _write_claude(call: HookCall, verdict: Verdict) -> JsonObject:
    if verdict.decision == "none" or (verdict.decision == "ask" and call.event == "PermissionRequest"):
        return {"systemMessage": verdict.reason}
    updated: JsonObject = {} if verdict.args is None else {"updatedInput": verdict.args}
    if call.event == "PermissionRequest":
        decision = {"behavior": verdict.decision, **updated}
        decision |= {"message": verdict.reason} if verdict.decision == "deny" else {}
        return {"hookSpecificOutput": {"hookEventName": call.event, "decision": decision}}
    output = {"permissionDecision": verdict.decision, "permissionDecisionReason": verdict.reason, **updated}
    return {"hookSpecificOutput": {"hookEventName": call.event, **output}}


class Format(NamedTuple):
    """How one agent's hooks are read and answered."""

    title: str
    read: Callable[[str, JsonObject], HookCall]
    write: Callable[[HookCall, Verdict], JsonObject]


FORMATS = {"claude-code": Format("Claude Code", _read_tool_use, _write_claude)}
"""The agents whose hooks Sayso answers."""


def read_call(agent: str, raw: bytes) -> HookCall:
    """Return the call in a hook's input; raises `InvalidInput` for one that cannot be read whole."""
    title = FORMATS[agent].title
    if len(raw) > MAX_INPUT_BYTES:
        raise TooLarge(f"The hook's input is over {MAX_INPUT_BYTES} bytes. Nobody can review it: make smaller calls.")
    payload = parse_json(raw)
    if not isinstance(payload, dict):
        raise InvalidInput(f"The hook's input is not a JSON object of {title}. Let {title} run this command as a hook.")
    try:
        call = FORMATS[agent].read(agent, payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"])) or "it"
        raise InvalidInput(
            f"The hook's input is none that Sayso knows of {title}: {name}: {first['msg']}. "
            "Put `sayso hook` before tools only, and compare the versions of both."
        ) from error
    check_tool_name(call.tool)
    return call


def write_answer(call: HookCall, verdict: Verdict) -> JsonObject:
    """Return the answer in the agent's own format."""
    return FORMATS[call.agent].write(call, verdict)
