"""Formats of hooks: the JSON that each coding agent sends before a tool runs, and the JSON that it reads as answer.

Written from the agents' public pages: Claude Code and Codex share one form of input.
"""

import os
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from sayso.adapters.hooks.calls import SHELL, HookCall, Verdict
from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.records.tools import check_tool_name
from sayso.errors import InvalidInput, TooLarge

MAX_INPUT_BYTES = 1_000_000
"""The largest input of a hook. A call with more cannot be reviewed."""

_ASKING = ("default", "dontAsk")
"""Claude Code's permission modes that let no call run which no rule of it allows."""

_FOREIGN = "mcp__"
"""The begin of the names of MCP servers' tools, whose arguments are as their server takes them."""


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
    permission_mode: str = ""
    prompt_id: str = ""
    agent_id: str | None = None


def _find_run(agent: str, sent: _ToolUse) -> str | None:
    """Return the run of Claude Code that a call can end.

    It ignores an answer `defer` in a terminal, and to calls that arrive together. Its own permissions decide then, so
    they must not let calls run.
    """
    can_end = (
        agent == "claude-code"
        and sent.hook_event_name == "PreToolUse"
        and os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")
        and sent.permission_mode in _ASKING
        and sent.agent_id is None
    )
    return f"{os.environ.get('CLAUDE_PID', '')}:{sent.prompt_id}" if can_end else None


def _read_tool_use(agent: str, payload: JsonObject) -> HookCall:
    sent = _ToolUse.model_validate(payload)
    project = os.environ.get("CLAUDE_PROJECT_DIR") if agent == "claude-code" else None
    return HookCall(
        agent=agent,
        event=sent.hook_event_name,
        session=sent.session_id,
        call_id=sent.tool_use_id,
        tool=sent.tool_name,
        native=sent.tool_input,
        place={} if sent.tool_name.startswith(_FOREIGN) else {"cwd": sent.cwd, "project": project or sent.cwd},
        note=_find_note(sent.tool_name, sent.tool_input),
        takes_changes=agent == "claude-code" or sent.hook_event_name == "PreToolUse",
        run=_find_run(agent, sent),
    )


def _find_note(tool: str, args: JsonObject) -> JsonObject:
    return {"description": args["description"]} if tool == SHELL and "description" in args else {}


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


def _write_codex(call: HookCall, verdict: Verdict) -> JsonObject:
    """Answer Codex: before a tool it knows `allow` with changes only, and no `ask`; its own approvals come after."""
    if call.event == "PreToolUse" and verdict.decision == "allow" and verdict.args is None:
        return {}
    is_asked = call.event == "PreToolUse" and verdict.decision == "ask"
    return _write_claude(call, verdict._replace(decision="deny") if is_asked else verdict)


class _Cursor(_Payload):
    """What Cursor sends: before any tool (`preToolUse`), or before a shell command or a call of an MCP server."""

    hook_event_name: Literal["preToolUse", "beforeShellExecution", "beforeMCPExecution"]
    conversation_id: _Id
    workspace_roots: list[str] = Field(min_length=1)
    cwd: str | None = None
    command: str | None = None
    tool_name: _Id = SHELL
    tool_input: dict[str, JsonValue] | str = ""
    tool_use_id: _Id | None = None


def _read_cursor(agent: str, payload: JsonObject) -> HookCall:
    sent = _Cursor.model_validate(payload)
    is_shell = sent.hook_event_name == "beforeShellExecution"
    args: JsonObject | str = {"command": sent.command} if is_shell else sent.tool_input
    native = parse_json(args) if isinstance(args, str) else args
    if not isinstance(native, dict):
        raise InvalidInput(f"The arguments of {sent.tool_name} are not a JSON object, so nobody can review them.")
    is_foreign = sent.hook_event_name == "beforeMCPExecution" or sent.tool_name.startswith("MCP")
    tool = f"{_FOREIGN}{sent.tool_name}" if is_foreign else {"Shell": SHELL}.get(sent.tool_name, sent.tool_name)
    note = _find_note(tool, native)
    note |= {name: native[name] for name in ("working_directory",) if tool == SHELL and native.get(name)}
    root = sent.workspace_roots[0]
    place: JsonObject = {"cwd": note.get("working_directory") or sent.cwd or root, "project": root}
    return HookCall(
        agent=agent,
        event=sent.hook_event_name,
        session=sent.conversation_id,
        call_id=sent.tool_use_id,
        tool=tool,
        native=native,
        place={} if is_foreign else place,
        note=note,
        takes_changes=sent.hook_event_name == "preToolUse",
    )


def _write_cursor(call: HookCall, verdict: Verdict) -> JsonObject:
    texts: JsonObject = {"user_message": verdict.reason, "agent_message": verdict.reason}
    if verdict.decision == "none":
        return texts
    is_asked = call.event == "preToolUse" and verdict.decision == "ask"  # it asks before commands and servers only
    updated: JsonObject = {} if verdict.args is None else {"updated_input": verdict.args}
    return {"permission": "deny" if is_asked else verdict.decision, **texts, **updated}


_OPENCODE_TOOLS = {
    "bash": SHELL,
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "list": "LS",
    "read": "Read",
    "task": "Task",
    "todowrite": "TodoWrite",
    "webfetch": "WebFetch",
    "write": "Write",
}
"""OpenCode's own tools, by the names that rules use for the same tools of other agents."""


class _OpenCode(_Payload):
    """What the plugin sends of a call of `tool.execute.before`."""

    tool: _Id
    sessionID: _Id  # noqa: N815 - OpenCode's name
    callID: _Id  # noqa: N815
    args: dict[str, JsonValue]
    directory: str
    worktree: str


def _read_opencode(agent: str, payload: JsonObject) -> HookCall:
    sent = _OpenCode.model_validate(payload)
    tool = _OPENCODE_TOOLS.get(sent.tool)
    return HookCall(
        agent=agent,
        event="tool.execute.before",
        session=sent.sessionID,
        call_id=sent.callID,
        tool=tool or f"{_FOREIGN}{sent.tool}",
        native=sent.args,
        place={"cwd": sent.directory, "project": sent.worktree} if tool else {},
        note=_find_note(tool or "", sent.args),
    )


def _write_opencode(_call: HookCall, verdict: Verdict) -> JsonObject:
    decision = "deny" if verdict.decision == "ask" else verdict.decision
    return {"decision": decision, "reason": verdict.reason, **({} if verdict.args is None else {"args": verdict.args})}


class Format(NamedTuple):
    """How one agent's hooks are read and answered."""

    title: str
    read: Callable[[str, JsonObject], HookCall]
    write: Callable[[HookCall, Verdict], JsonObject]


FORMATS = {
    "claude-code": Format("Claude Code", _read_tool_use, _write_claude),
    "codex": Format("Codex", _read_tool_use, _write_codex),
    "cursor": Format("Cursor", _read_cursor, _write_cursor),
    "opencode": Format("OpenCode", _read_opencode, _write_opencode),
}
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
