"""Tests of the guard of gated runs: what it refuses, and what it lets start."""

import pytest

from sayso.guarding.runs import (
    UnseenTool,
    admit,
    admit_unseen,
    find_refusal,
    note_gated,
    note_model,
    refuse_unseen,
    use_gated_call,
    use_gated_run,
    was_gated,
    was_model_asked,
)


def is_refused() -> bool:
    return find_refusal("send_money", "payer") is not None


def test_tool_outside_of_gated_runs_starts() -> None:
    refuse_unseen("send_money", "payer")


def test_refusal_names_tool_agent_and_gated_call() -> None:
    with use_gated_run("bot"), pytest.raises(UnseenTool) as refused, use_gated_call("delegate"):
        refuse_unseen("send_money", "payer")
    message = refused.value.message
    assert message.startswith("send_money was called inside delegate without review, so it did not run.")
    assert "the agent 'payer', which no gate has seen" in message
    assert "Give its tools to the gated agent 'bot'" in message


def test_refusal_outside_of_a_call_names_the_run() -> None:
    with use_gated_run("bot"), pytest.raises(UnseenTool, match="inside the run of the gated agent 'bot'"):
        refuse_unseen("send_money", None)


def test_call_fails_although_its_tool_hid_the_refusal() -> None:
    with use_gated_call("delegate") as running:
        assert find_refusal("send_money", "payer")
    with pytest.raises(UnseenTool, match="send_money was called inside delegate"):
        running.check()


def test_call_fails_with_the_refusal_instead_of_its_own_error() -> None:
    def run() -> None:
        assert is_refused()
        raise KeyError("no result")

    with pytest.raises(UnseenTool, match="send_money was called inside delegate"), use_gated_call("delegate"):
        run()


def test_admitted_tool_starts_once() -> None:
    with use_gated_call("delegate"), admit():
        assert not is_refused()
        assert is_refused()


def test_admission_does_not_reach_into_a_gated_call() -> None:
    with admit(), use_gated_run("bot"):
        assert is_refused()
        with admit(), use_gated_call("delegate"):
            assert is_refused()


def test_noted_functions_and_methods_were_gated() -> None:
    def send() -> None: ...

    assert not was_gated(send)
    assert was_gated(note_gated(send))
    assert was_gated(type("Bank", (), {"send": send})().send)
    assert not was_gated(None)


def test_approval_of_an_unseen_call_is_used_up() -> None:
    approved = iter([True, False])
    assert not admit_unseen("send_money")
    with use_gated_run("bot", lambda _name: next(approved)):
        assert admit_unseen("send_money")
        assert not admit_unseen("send_money")


def test_model_is_noted_in_its_own_call_alone() -> None:
    note_model()
    with use_gated_run("bot"):
        note_model()
        assert not was_model_asked()
        with use_gated_call("delegate"):
            assert not was_model_asked()
            note_model()
            assert was_model_asked()
        with use_gated_call("look_up"):
            assert not was_model_asked()
