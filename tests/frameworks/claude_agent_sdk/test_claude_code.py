"""The real Claude Code, alone and below its SDK, runs what the desk lets run, once."""

import re
import subprocess

import pytest

from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.frameworks.claude_agent_sdk.agents import PYTHON, Agent, kill
from tests.frameworks.claude_agent_sdk.models import ScriptedModel, running_model
from tests.frameworks.mcp.desks import PATIENCE_S, Desk

PAGE = (CHECKOUT / "docs" / "frameworks.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n### Claude Agent SDK\n")[2].partition("\n### ")[0]
pytestmark = pytest.mark.timeout(240)


def test_calls_run_as_they_were_decided(desk: Desk) -> None:
    agent = Agent(desk, "command")
    commands = ["pwd", agent.write("approved"), agent.write("denied"), agent.write("edited")]
    with running_model(commands) as model, agent.running(model) as child:
        agent.desk.decide("approve")
        assert wait_until(lambda: len(model.results) == 2, PATIENCE_S), model.texts()
        agent.desk.decide("deny", message="not outside of the project")
        assert wait_until(lambda: len(model.results) == 3, PATIENCE_S), model.texts()
        args = agent.desk.await_suspension().items[0].tool.args
        agent.desk.decide("approve", args={**args, "command": agent.write("changed")})
        assert child.wait(PATIENCE_S) == 0
    texts = model.texts()
    assert str(agent.project) in texts[0], "the rules let it run without a person"
    assert "not outside of the project" in texts[2]
    assert [agent.written(name) for name in ("approved", "denied", "edited", "changed")] == [1, 0, 0, 1]


def test_call_that_waited_too_long_continues_with_its_item(agent: Agent) -> None:
    agent.wait_s = 2
    with running_model([agent.write("once")] * 2) as model:
        model.may_go_on.clear()
        with agent.running(model) as child:
            waiting = agent.desk.await_suspension()
            assert wait_until(lambda: len(model.results) == 1, PATIENCE_S)
            assert agent.desk.decide("approve").id == waiting.id
            model.may_go_on.set()
            assert child.wait(PATIENCE_S) == 0
    assert "same call again" in model.texts()[0]
    assert agent.written("once") == 1


def test_agent_killed_before_the_decision_continues_with_its_item(agent: Agent) -> None:
    """The model makes the call again, under another id where Claude Code has recorded the first one."""
    with running_model([agent.write("once")]) as model:
        with agent.running(model) as child:
            waiting = agent.desk.await_suspension()
            agent.await_record()
            kill(child)
        assert agent.desk.decide("approve").id == waiting.id
        agent.run(model, "resume")
    assert len(model.results) == 1
    assert agent.written("once") == 1
    assert agent.desk.waiting() == []


def test_deferred_call_runs_once_when_its_session_resumes(desk: Desk) -> None:
    """The run ends before the decision, and no process waits."""
    agent = Agent(desk, "command", defers=True)
    with running_model([agent.write("once")]) as model:
        agent.run(model)
        waiting = agent.desk.await_suspension()
        agent.run(model, "resume")
        assert (agent.written("once"), model.results) == (0, []), "nobody has decided yet"
        assert agent.desk.decide("approve").id == waiting.id
        agent.run(model, "resume")
    assert agent.written("once") == 1
    assert agent.desk.waiting() == []


def test_of_two_calls_in_a_turn_none_is_lost(desk: Desk) -> None:
    """Claude Code would forget the first of two deferred calls."""
    agent = Agent(desk, "command", defers=True)
    with running_model([[agent.write("first"), agent.write("second")], agent.write("second")]) as model:
        agent.run(model)
        first, second = sorted(desk.waiting(), key=lambda one: str(one.items[0].tool.args["command"]))
        desk.reviewer.decide(first.id, first.items[0], "deny", message="not the first")
        desk.reviewer.decide(second.id, second.items[0], "approve")
        agent.run(model, "resume")
    texts = model.texts()
    assert any("not the first" in text for text in texts), texts
    assert any("again, alone" in text for text in texts), texts
    assert [agent.written(name) for name in ("first", "second")] == [0, 1]


def start_example(agent: Agent, model: ScriptedModel, number: int, call: str) -> "subprocess.Popen[str]":
    """Start an example of the page, which prints what its function returns."""
    example = re.findall(r"^```python\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)[number]
    assert len([line for line in example.splitlines() if line.strip()]) <= 15
    file = agent.desk.home / "example.py"
    file.write_text(f"{example}\n\nimport asyncio\n\nprint(asyncio.run({call}))\n")
    command = [str(PYTHON), str(file)]
    return subprocess.Popen(command, cwd=agent.project, env=agent.environ(model), stdout=subprocess.PIPE, text=True)


def test_example_of_the_page_waits(desk: Desk) -> None:
    agent = Agent(desk, "sdk")
    with running_model([agent.write("once")]) as model:
        child = start_example(agent, model, 0, 'run("go")')
        desk.decide("approve")
        child.communicate(timeout=2 * PATIENCE_S)
    assert (child.returncode, agent.written("once")) == (0, 1)


def test_example_of_the_page_ends_with_the_call(desk: Desk) -> None:
    agent = Agent(desk, "sdk")
    (install,) = re.findall(r"`(sayso hook install [^`]*)`", SECTION)
    with running_model([agent.write("once")]) as model:
        subprocess.run(install.split(), cwd=agent.project, env=agent.environ(model), check=True)
        text, _ = start_example(agent, model, 1, 'run("go")').communicate(timeout=2 * PATIENCE_S)
        (session,) = re.findall(r"session_id='([^']*)'", text)
        assert "stop_reason='tool_deferred'" in text
        desk.decide("approve")
        start_example(agent, model, 1, f"run(session={session!r})").communicate(timeout=2 * PATIENCE_S)
    assert agent.written("once") == 1
