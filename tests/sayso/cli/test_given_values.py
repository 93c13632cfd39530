"""Integers of any size pass the command line exactly, and passwords given over it are masked everywhere afterwards."""

import json
from typing import Any

import pytest

from sayso.client import Client
from sayso.core.text.redaction import MASK
from tests.sayso.cli.test_commands import Run, desk, sayso
from tests.service.channels.given import BEYOND, PAIRS, SECRET, TYPED, WHOLE

__all__ = ["desk", "sayso"]  # the fixtures of this module
Desk = tuple[str, str, str, str]


def ask(at: Desk, tool: str, schema: dict[str, str], **args: Any) -> str:
    """Return the id of a suspension that asks for a call with a `code` of this schema."""
    parameters = {"type": "object", "properties": {"code": schema, "user": {"type": "string"}}}
    call: Any = {"tool": tool, "args": args, "definition": {"parameters": parameters}}
    with Client(at[0], at[1]) as agent:
        return agent.suspend({"mode": "poll", "calls": [call]}).id


def redeem(at: Desk, waiting: str) -> str:
    """Return the arguments that the call gets."""
    with Client(at[0], at[1]) as agent:
        return json.dumps(agent.redeem(waiting, "i1", "k").args, sort_keys=True)


@pytest.mark.parametrize("code", BEYOND)
def test_show_and_approve_print_an_integer_exactly(desk: Desk, sayso: Run, code: int) -> None:
    waiting = ask(desk, "refund", WHOLE, code=code)
    for words in (("show", waiting), ("show", waiting, "--json"), ("inbox", "--json"), ("approve", waiting, "--yes")):
        assert str(code) in sayso(*words).stdout
    assert redeem(desk, waiting) == f'{{"code": {code}}}'


@pytest.mark.parametrize(("typed", "given"), PAIRS[1:])
def test_integer_in_other_arguments_reaches_the_call(desk: Desk, sayso: Run, typed: float, given: int) -> None:
    waiting = ask(desk, "refund", WHOLE, code=2**81)
    done = sayso("approve", waiting, "--args", f'{{"code": {typed}}}', "--yes")
    assert done.returncode == 0, done.stderr
    assert redeem(desk, waiting) == f'{{"code": {given}}}'
    assert str(given) in sayso("show", waiting, "--json").stdout


@pytest.mark.parametrize(("typed", "given"), PAIRS[1:])
def test_integer_given_as_an_answer_reaches_the_call(desk: Desk, sayso: Run, typed: float, given: int) -> None:
    waiting = ask(desk, "ask", WHOLE)
    done = sayso("answer", waiting, str(typed), "--yes")
    assert done.returncode == 0, done.stderr
    assert redeem(desk, waiting) == f'{{"code": {given}}}'


@pytest.mark.parametrize("tool", ["ask", "log_in"])
def test_password_given_in_a_terminal_is_masked_everywhere(desk: Desk, sayso: Run, tool: str) -> None:
    waiting = ask(desk, tool, SECRET, user="ann")
    args = json.dumps({"user": "ann", "code": TYPED})
    words = ("answer", waiting, TYPED, "--yes") if tool == "ask" else ("approve", waiting, "--args", args, "--yes")
    done = sayso(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(redeem(desk, waiting)) == json.loads(args)
    with Client(desk[0], desk[1]) as agent:
        run = agent.find(waiting).run.id
    commands = [("show", waiting), ("show", waiting, "--json"), ("run", "show", run), ("events", run, "--json")]
    shown = [done.stdout, done.stderr, *(sayso(*one).stdout for one in commands)]
    assert [text for text in shown if TYPED in text] == []
    assert MASK in shown[3]


def test_result_that_quotes_a_password_is_masked_in_a_terminal(desk: Desk, sayso: Run) -> None:
    waiting = ask(desk, "ask", SECRET, user="ann")
    assert sayso("answer", waiting, TYPED, "--yes").returncode == 0
    redeem(desk, waiting)
    with Client(desk[0], desk[1]) as agent:
        agent.report_outcome(waiting, "i1", "k", success=True, output=f"signed in with {TYPED}")
        run = agent.find(waiting).run.id
    commands = [("show", waiting), ("show", waiting, "--json"), ("run", "show", run), ("run", "show", run, "--json")]
    shown = [sayso(*one).stdout for one in (*commands, ("events", run), ("events", run, "--json"))]
    assert [text for text in shown if TYPED in text] == []
    assert f"signed in with {MASK}" in shown[-1]
