"""What each agent sends is read whole or refused, and answered in its own format."""

import json

import pytest

from sayso.adapters.hooks.calls import Verdict
from sayso.adapters.hooks.formats import MAX_INPUT_BYTES, read_call, write_answer
from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput, TooLarge
from tests.sayso.adapters.hooks.payloads import PROJECT, claude, read


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", "not a JSON object"),
        (b'{"a": 1, "a": 2}', "appears twice"),
        (b"[" * 100_000, "nested deeper"),
        (json.dumps(claude(hook_event_name="PostToolUse")).encode(), "hook_event_name"),
        (json.dumps(claude(tool_input="rm")).encode(), "tool_input"),
        (json.dumps(claude(session_id="")).encode(), "session_id"),
        (json.dumps(claude(tool_name="a b")).encode(), "Rename it"),
    ],
    ids=["empty", "bytes", "list", "twice", "deep", "event", "input", "session", "name"],
)
def test_input_that_cannot_be_read_is_refused(raw: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        read_call("claude-code", raw)


def test_input_that_is_too_large_is_refused() -> None:
    with pytest.raises(TooLarge, match="make smaller calls"):
        read_call("claude-code", b" " * (MAX_INPUT_BYTES + 1))


def test_call_names_its_folder_and_its_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", PROJECT)
    call = read(claude(cwd=f"{PROJECT}/web"))
    assert call.args == {"command": "npm publish", "cwd": f"{PROJECT}/web", "project": PROJECT}


def test_call_cannot_hide_an_argument_behind_its_folder() -> None:
    with pytest.raises(InvalidInput, match="which the hook sets"):
        read(claude(tool_input={"command": "ls", "cwd": "/"}))
    foreign = read(claude(tool_name="mcp__deploy__run", tool_input={"project": "shop"}))
    assert foreign.args == {"project": "shop"}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict("allow", "ok"), {"permissionDecision": "allow", "permissionDecisionReason": "ok"}),
        (
            Verdict("allow", "ok", {"command": "ls"}),
            {"permissionDecision": "allow", "permissionDecisionReason": "ok", "updatedInput": {"command": "ls"}},
        ),
        (Verdict("deny", "no"), {"permissionDecision": "deny", "permissionDecisionReason": "no"}),
        (Verdict("ask", "away"), {"permissionDecision": "ask", "permissionDecisionReason": "away"}),
    ],
)
def test_claude_code_reads_the_answer_to_pre_tool_use(verdict: Verdict, expected: JsonObject) -> None:
    answer = write_answer(read(claude()), verdict)
    assert answer == {"hookSpecificOutput": {"hookEventName": "PreToolUse", **expected}}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict("allow", "ok", {"command": "ls"}), {"behavior": "allow", "updatedInput": {"command": "ls"}}),
        (Verdict("deny", "no"), {"behavior": "deny", "message": "no"}),
    ],
)
def test_claude_code_reads_the_answer_to_permission_request(verdict: Verdict, expected: JsonObject) -> None:
    answer = write_answer(read(claude(call_id=None, hook_event_name="PermissionRequest")), verdict)
    assert answer == {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": expected}}


def test_claude_code_decides_itself_without_a_verdict() -> None:
    assert write_answer(read(claude()), Verdict("none", "away")) == {"systemMessage": "away"}
    request = read(claude(call_id=None, hook_event_name="PermissionRequest"))
    assert write_answer(request, Verdict("ask", "away")) == {"systemMessage": "away"}


CODEX = claude(turn_id="turn_1", model="gpt-5", permission_mode="default")
CURSOR: JsonObject = {
    "conversation_id": "conv-123",
    "generation_id": "gen-456",
    "workspace_roots": [PROJECT],
    "cursor_version": "2.0.77",
}
CURSOR_TOOL = CURSOR | {
    "hook_event_name": "preToolUse",
    "tool_name": "Shell",
    "tool_input": {"command": "npm publish", "working_directory": f"{PROJECT}/web"},
    "tool_use_id": "call_1",
}
CURSOR_SHELL = CURSOR | {"hook_event_name": "beforeShellExecution", "command": "npm publish", "cwd": f"{PROJECT}/web"}
CURSOR_SERVER = CURSOR | {
    "hook_event_name": "beforeMCPExecution",
    "tool_name": "query",
    "tool_input": '{"cwd": "/", "sql": "select 1"}',
    "url": "http://localhost:3000",
}
OPENCODE: JsonObject = {
    "tool": "bash",
    "sessionID": "ses_1",
    "callID": "call_1",
    "args": {"command": "npm publish", "description": "Publish"},
    "directory": f"{PROJECT}/web",
    "worktree": PROJECT,
}
IN_WEB: JsonObject = {"command": "npm publish", "cwd": f"{PROJECT}/web", "project": PROJECT}


@pytest.mark.parametrize(
    ("agent", "payload", "tool", "args"),
    [
        ("codex", CODEX, "Bash", IN_WEB | {"cwd": PROJECT}),
        (
            "codex",
            CODEX | {"tool_name": "mcp__bank__pay", "tool_input": {"to": "ann"}},
            "mcp__bank__pay",
            {"to": "ann"},
        ),
        ("cursor", CURSOR_TOOL, "Bash", IN_WEB),
        ("cursor", CURSOR_SHELL, "Bash", IN_WEB),
        ("cursor", CURSOR_SERVER, "mcp__query", {"cwd": "/", "sql": "select 1"}),
        ("cursor", CURSOR_TOOL | {"tool_name": "MCP:query", "tool_input": {"a": 1}}, "mcp__MCP:query", {"a": 1}),
        ("opencode", OPENCODE, "Bash", IN_WEB),
        ("opencode", OPENCODE | {"tool": "bank_pay", "args": {"project": 1}}, "mcp__bank_pay", {"project": 1}),
    ],
)
def test_payload_of_each_agent_is_read(agent: str, payload: JsonObject, tool: str, args: JsonObject) -> None:
    call = read(payload, agent)
    assert (call.tool, call.args) == (tool, args)
    assert call.session in ("0d5f", "conv-123", "ses_1")


@pytest.mark.parametrize(
    ("agent", "payload"),
    [
        ("codex", CODEX | {"hook_event_name": "Stop"}),
        ("cursor", CURSOR_SHELL | {"hook_event_name": "afterShellExecution"}),
        ("cursor", CURSOR_SHELL | {"workspace_roots": []}),
        ("cursor", CURSOR_SERVER | {"tool_input": "sql"}),
        ("cursor", CURSOR_SERVER | {"tool_input": "[]"}),
        ("opencode", OPENCODE | {"args": None}),
        ("opencode", {}),
    ],
)
def test_payload_that_an_agent_does_not_send_is_refused(agent: str, payload: JsonObject) -> None:
    with pytest.raises(InvalidInput):
        read(payload, agent)


ALLOWED, CHANGED = Verdict("allow", "ok"), Verdict("allow", "ok", {"command": "ls"})
DENIED, ASKED, OPEN = Verdict("deny", "no"), Verdict("ask", "away"), Verdict("none", "away")


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (ALLOWED, {}),
        (CHANGED, {"permissionDecision": "allow", "permissionDecisionReason": "ok", "updatedInput": {"command": "ls"}}),
        (DENIED, {"permissionDecision": "deny", "permissionDecisionReason": "no"}),
        (ASKED, {"permissionDecision": "deny", "permissionDecisionReason": "away"}),
    ],
)
def test_codex_reads_the_answer_to_pre_tool_use(verdict: Verdict, expected: JsonObject) -> None:
    answer = write_answer(read(CODEX, "codex"), verdict)
    assert answer == ({"hookSpecificOutput": {"hookEventName": "PreToolUse", **expected}} if expected else {})


@pytest.mark.parametrize(
    ("payload", "verdict", "expected"),
    [
        (CURSOR_TOOL, ALLOWED, {"permission": "allow"}),
        (CURSOR_TOOL, CHANGED, {"permission": "allow", "updated_input": {"command": "ls"}}),
        (CURSOR_TOOL, DENIED, {"permission": "deny"}),
        (CURSOR_TOOL, ASKED, {"permission": "deny"}),
        (CURSOR_SHELL, ASKED, {"permission": "ask"}),
        (CURSOR_SHELL, OPEN, {}),
    ],
)
def test_cursor_reads_the_answer(payload: JsonObject, verdict: Verdict, expected: JsonObject) -> None:
    texts = {"user_message": verdict.reason, "agent_message": verdict.reason}
    assert write_answer(read(payload, "cursor"), verdict) == expected | texts


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (ALLOWED, {"decision": "allow", "reason": "ok"}),
        (CHANGED, {"decision": "allow", "reason": "ok", "args": {"command": "ls"}}),
        (DENIED, {"decision": "deny", "reason": "no"}),
        (ASKED, {"decision": "deny", "reason": "away"}),
        (OPEN, {"decision": "none", "reason": "away"}),
    ],
)
def test_opencode_reads_the_answer(verdict: Verdict, expected: JsonObject) -> None:
    assert write_answer(read(OPENCODE, "opencode"), verdict) == expected


@pytest.mark.parametrize(
    ("agent", "payload"),
    [
        ("codex", CODEX | {"hook_event_name": "PermissionRequest"}),
        ("cursor", CURSOR_SHELL),
        ("cursor", CURSOR_SERVER),
    ],
)
def test_changes_that_an_answer_cannot_have_are_refused_with_them(agent: str, payload: JsonObject) -> None:
    call = read(payload, agent)
    with pytest.raises(InvalidInput, match=r'Call it with \{"changed":1\}'):
        call.restore({"changed": 1} | call.place)


def test_changes_keep_the_folder_of_a_cursor_command() -> None:
    restored = read(CURSOR_TOOL, "cursor").restore(IN_WEB | {"command": "ls"})
    assert restored == {"command": "ls", "working_directory": f"{PROJECT}/web"}
