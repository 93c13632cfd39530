"""Hooks of a coding agent that are killed before they answer."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.stacks import Stack
from sayso.client import Client
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, quick_stack
from tests.journeys.test_gated_scripts import await_pending, reviewer
from tests.sayso.adapters.hooks.payloads import claude, decision


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with quick_stack(tmp_path_factory.mktemp("hooks") / "home") as running:
        yield running


@pytest.fixture
def person(stack: Stack) -> Iterator[Client]:
    with reviewer(stack) as client:
        yield client


def start(stack: Stack, home: Path, wait_s: int = PATIENCE_S, **payload: Any) -> subprocess.Popen[str]:
    """Start a hook that waits for a person."""
    environ = {**os.environ, "SAYSO_URL": stack.url, "SAYSO_KEY": stack.agent_key, "PYTHONPATH": str(CHECKOUT)}
    hook = subprocess.Popen(
        [sys.executable, "-m", "sayso", "hook", "claude-code", "--wait", str(wait_s)],
        env={**environ, "XDG_STATE_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert hook.stdin is not None
    hook.stdin.write(json.dumps(claude(session_id=home.name, **payload)))
    hook.stdin.close()
    return hook


def read_answer(hook: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the decision and the reason of a hook that has ended."""
    assert hook.stdout is not None
    answer = hook.stdout.read()
    assert hook.wait(PATIENCE_S) == 0, answer
    return decision(json.loads(answer))


@pytest.mark.parametrize("call_id", ["toolu_01", "toolu_02"])
def test_killed_hook_asked_again_has_the_same_item(stack: Stack, person: Client, tmp_path: Path, call_id: str) -> None:
    hook = start(stack, tmp_path)
    waiting = await_pending(person)
    hook.kill()
    hook.wait()
    again = start(stack, tmp_path, call_id=call_id)
    assert await_pending(person).id == waiting.id
    person.decide(waiting.id, waiting.items[0], "approve")
    assert read_answer(again)[0] == "allow"
    assert person.await_run(waiting.run.id, 10).status == "completed"
    verdict, reason = read_answer(start(stack, tmp_path, call_id="toolu_01", wait_s=1))
    assert verdict == "deny", reason


def test_hook_killed_before_an_approval_allows_the_call_once(stack: Stack, person: Client, tmp_path: Path) -> None:
    hook = start(stack, tmp_path)
    waiting = await_pending(person)
    hook.kill()
    hook.wait()
    person.decide(waiting.id, waiting.items[0], "approve")
    answers = [read_answer(start(stack, tmp_path, wait_s=1))[0] for _ in range(3)]
    assert answers == ["allow", "deny", "deny"]


def test_hook_killed_before_a_denial_never_allows_the_call(stack: Stack, person: Client, tmp_path: Path) -> None:
    hook = start(stack, tmp_path)
    waiting = await_pending(person)
    hook.kill()
    hook.wait()
    person.decide(waiting.id, waiting.items[0], "deny", message="no")
    answers = [read_answer(start(stack, tmp_path, wait_s=1)) for _ in range(3)]
    assert [verdict for verdict, _ in answers] == ["deny"] * 3
    assert "no" in answers[0][1]


def test_hook_whose_time_is_over_continues_with_the_same_item(stack: Stack, person: Client, tmp_path: Path) -> None:
    verdict, reason = read_answer(start(stack, tmp_path, wait_s=1))
    waiting = await_pending(person)
    assert verdict == "deny"
    assert waiting.id in reason
    person.decide(waiting.id, waiting.items[0], "approve")
    assert read_answer(start(stack, tmp_path, call_id="toolu_02"))[0] == "allow"


def test_hook_of_an_agent_that_is_gone_uses_up_no_approval(stack: Stack, person: Client, tmp_path: Path) -> None:
    hook = start(stack, tmp_path)
    waiting = await_pending(person)
    assert hook.stdout is not None
    hook.stdout.close()
    assert hook.wait(PATIENCE_S) == 2
    person.decide(waiting.id, waiting.items[0], "approve")
    assert read_answer(start(stack, tmp_path, call_id="toolu_02", wait_s=1))[0] == "allow"
