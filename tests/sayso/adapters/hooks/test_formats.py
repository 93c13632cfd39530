"""What each agent sends is read whole or refused, and answered in its own format."""

import json

import pytest

from sayso.adapters.hooks.formats import MAX_INPUT_BYTES, Verdict, read_call, write_answer
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
    hidden = read(claude(tool_input={"command": "ls", "cwd": "/", "project": "/"}))
    assert (hidden.args["cwd"], hidden.args["project"]) == (PROJECT, PROJECT), "the agent does not choose it"


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
