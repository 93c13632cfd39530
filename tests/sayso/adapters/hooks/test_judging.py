"""One item, one permit and one answer `allow` for each call that a hook asks about."""

import os
from pathlib import Path
from typing import Any

import pytest

from sayso.adapters.hooks.calls import Verdict
from sayso.adapters.hooks.judging import HookOptions, OnFailure, judge
from sayso.client.retries import Flow
from sayso.testing import InProcessDesk
from tests.sayso.adapters.hooks.payloads import PROJECT, ask, claude, decision, read


def test_approved_call_is_allowed_once(desk: InProcessDesk) -> None:
    desk.reviewer.approves()
    assert decision(ask(desk, claude())) == ("allow", "Allowed by the desk.")
    assert decision(ask(desk, claude()))[0] == "deny"
    (record,) = desk.records.values()
    assert record.items[0].tool.args == {"command": "npm publish", "cwd": PROJECT, "project": PROJECT}
    assert record.run.title == "Publish the package"


def test_denied_call_is_never_allowed(desk: InProcessDesk) -> None:
    desk.reviewer.denies(message="not on Fridays")
    verdict, reason = decision(ask(desk, claude()))
    assert verdict == "deny"
    assert "not on Fridays" in reason
    desk.reviewer.approves()
    assert decision(ask(desk, claude()))[0] == "deny", "the same call keeps its denial"


def test_waiting_call_continues_with_the_same_item_under_another_id(desk: InProcessDesk) -> None:
    verdict, reason = decision(ask(desk, claude()))
    assert verdict == "deny"
    assert "waits for a person" in reason
    assert "same call again" in reason
    changed = claude(call_id="toolu_02", tool_input={"command": "npm publish", "description": "Publish it at last"})
    assert decision(ask(desk, changed))[0] == "deny"
    assert len(desk.records) == 1
    desk.reviewer.decide("approve")
    assert decision(ask(desk, claude(call_id="toolu_03")))[0] == "allow"
    assert decision(ask(desk, claude(call_id="toolu_04")))[0] == "deny", "the permit was redeemed"
    assert len(desk.records) == 2


@pytest.mark.parametrize(
    "other", [{"session_id": "other"}, {"cwd": "/elsewhere"}, {"tool_input": {"command": "npm publish "}}], ids=str
)
def test_another_call_has_its_own_item(desk: InProcessDesk, other: dict[str, Any]) -> None:
    ask(desk, claude())
    ask(desk, claude(call_id="toolu_02", **other))
    assert len(desk.records) == 2


def test_call_without_an_id_asks_anew_once_it_was_allowed(desk: InProcessDesk) -> None:
    payload = claude(call_id=None)
    for number in (1, 2, 3):
        assert decision(ask(desk, payload))[0] == "deny"
        assert decision(ask(desk, payload))[0] == "deny"
        assert len(desk.records) == number
        desk.reviewer.decide("approve")
        assert decision(ask(desk, payload))[0] == "allow"


def test_two_hooks_of_like_calls_share_no_permit(desk: InProcessDesk, state: Path) -> None:
    ask(desk, claude())
    (file,) = state.iterdir()
    key = file.read_text()
    desk.reviewer.decide("approve")
    assert decision(ask(desk, claude()))[0] == "allow"
    file.write_text(key)  # the second hook had read it before the first one ended
    assert decision(ask(desk, claude(call_id="toolu_02")))[0] == "deny"
    assert len(desk.waiting) == 1


def test_waiting_call_continues_by_its_id_without_a_folder_for_keys(desk: InProcessDesk, state: Path) -> None:
    state.parent.write_text("a file")
    assert decision(ask(desk, claude()))[0] == "deny"
    desk.reviewer.decide("approve")
    assert decision(ask(desk, claude()))[0] == "allow"
    assert len(desk.records) == 1


def test_key_that_nobody_repeats_is_removed_after_a_month(desk: InProcessDesk, state: Path) -> None:
    ask(desk, claude())
    (file,) = state.iterdir()
    os.utime(file, (0, 0))
    ask(desk, claude("npm login"))
    assert len([*state.iterdir()]) == 1


def test_changed_arguments_go_to_the_agent_with_its_description(desk: InProcessDesk) -> None:
    desk.reviewer.approves(args={"command": "npm publish --dry-run", "cwd": PROJECT, "project": PROJECT})
    output = ask(desk, claude())["hookSpecificOutput"]
    assert output["permissionDecision"] == "allow"
    assert output["updatedInput"] == {"command": "npm publish --dry-run", "description": "Publish the package"}


def test_changed_folder_is_refused(desk: InProcessDesk) -> None:
    desk.reviewer.approves(args={"command": "npm publish", "cwd": "/", "project": PROJECT})
    verdict, reason = decision(ask(desk, claude()))
    assert verdict == "deny"
    assert "a hook cannot" in reason


def test_hook_killed_after_its_permit_is_in_doubt(desk: InProcessDesk) -> None:
    call = read(claude())
    desk.reviewer.approves()
    with desk.client() as client:
        flow: Flow[Verdict] = judge(call, HookOptions(wait_s=1), client.retry_policy)
        step: Any = flow.send(None)
        while not getattr(step, "path", "").endswith("/redeem"):
            step = flow.send(client._receive(step))
        client._receive(step)
        flow.close()
    verdict, reason = decision(ask(desk, claude()))
    assert verdict == "deny"
    assert "may have run" in reason


@pytest.mark.parametrize(("on_failure", "expected"), [("closed", "deny"), ("ask", "ask"), ("open", None)])
def test_unreachable_desk_has_the_answer_of_its_setting(
    desk: InProcessDesk, on_failure: OnFailure, expected: str | None
) -> None:
    desk.drop_requests = 1_000
    answer = ask(desk, claude(), options=HookOptions(0, on_failure))
    reason = answer["systemMessage"] if expected is None else decision(answer)[1]
    assert expected is None or decision(answer)[0] == expected
    assert "because this hook" in reason
    assert ("hookSpecificOutput" in answer) is (expected is not None)


def test_tool_of_an_mcp_server_keeps_its_arguments(desk: InProcessDesk) -> None:
    ask(desk, claude(tool_name="mcp__bank__pay", tool_input={"to": "ann", "description": "rent"}))
    (record,) = desk.records.values()
    assert record.items[0].tool.args == {"to": "ann", "description": "rent"}


RUN = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli", "CLAUDE_PID": "7"}
"""What Claude Code sets for hooks of a run without a terminal."""


def set_run(monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    for name, value in {**RUN, **more}.items():
        monkeypatch.setenv(name, value)


def ask_to_defer(desk: InProcessDesk, command: str, call_id: str, **more: Any) -> tuple[str, str]:
    return decision(ask(desk, claude(command, call_id, **more), options=HookOptions(0, defers=True)))


def test_deferred_call_continues_when_its_session_resumes(desk: InProcessDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    set_run(monkeypatch)
    assert ask_to_defer(desk, "npm publish", "toolu_01", prompt_id="p")[0] == "defer"
    set_run(monkeypatch, CLAUDE_PID="8")
    assert ask_to_defer(desk, "npm publish", "toolu_01")[0] == "defer", "nobody has decided yet"
    desk.reviewer.decide("approve")
    set_run(monkeypatch, CLAUDE_PID="9")
    assert ask_to_defer(desk, "npm publish", "toolu_01")[0] == "allow"
    assert ask_to_defer(desk, "npm publish", "toolu_01")[0] == "deny", "the permit was redeemed"
    assert len(desk.records) == 1


def test_second_waiting_call_of_a_run_is_made_again_alone(desk: InProcessDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    set_run(monkeypatch)
    assert ask_to_defer(desk, "npm publish", "toolu_01")[0] == "defer"
    verdict, reason = ask_to_defer(desk, "npm pack", "toolu_02")
    assert verdict == "deny"
    assert "Make exactly this call again, alone" in reason
    set_run(monkeypatch, CLAUDE_PID="8")
    assert ask_to_defer(desk, "npm pack", "toolu_03")[0] == "defer"
    assert len(desk.records) == 2, "each call keeps its item"


@pytest.mark.parametrize(
    ("more", "payload"),
    [
        ({"CLAUDE_CODE_ENTRYPOINT": "cli"}, {}),
        ({}, {"permission_mode": "bypassPermissions"}),
        ({}, {"permission_mode": "acceptEdits"}),
        ({}, {"agent_id": "a1"}),
    ],
    ids=["terminal", "bypass", "accept", "subagent"],
)
def test_call_that_might_run_unasked_is_denied_instead_of_deferred(
    desk: InProcessDesk, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], payload: dict[str, Any]
) -> None:
    set_run(monkeypatch, **more)
    verdict, reason = ask_to_defer(desk, "npm publish", "toolu_01", **payload)
    assert (verdict, "same call again" in reason) == ("deny", True)


def test_call_is_denied_where_no_place_of_its_run_can_be_kept(
    desk: InProcessDesk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    set_run(monkeypatch)
    assert ask_to_defer(desk, "npm publish", "toolu_01")[0] == "deny"
