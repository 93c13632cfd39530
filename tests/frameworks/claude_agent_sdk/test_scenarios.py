"""The scenarios of the support table that the Claude Agent SDK has, with the real Claude Code.

Some run with a hook that waits. In the others the run ends with the call that waits, and its session resumes.
"""

from typing import Any

import pytest

from launch.stops import wait_until
from tests.frameworks.bots.effects import HOLD
from tests.frameworks.claude_agent_sdk.agents import Agent, kill
from tests.frameworks.claude_agent_sdk.models import ScriptedModel, running_model
from tests.frameworks.kinds import CLAUDE
from tests.frameworks.mcp.desks import PATIENCE_S, Desk
from tests.frameworks.test_conformance import look, mail, money

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(params=[CLAUDE])
def agent(desk: Desk) -> Agent:
    """An agent of the SDK with tools of its own."""
    return Agent(desk, "sdk")


@pytest.fixture
def deferring(agent: Agent) -> Agent:
    """The same, whose runs end with a call that waits."""
    agent.defers = True
    return agent


def find_effects(agent: Agent) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that ran."""
    return [(effect["tool"], effect["args"]) for effect in agent.desk.effects()]


def await_results(model: ScriptedModel, count: int) -> list[str]:
    """Return what the model read, once it has this many results."""
    assert wait_until(lambda: len(model.results) >= count, PATIENCE_S), model.texts()
    return model.texts()


def test_approve(deferring: Agent) -> None:
    """A session that resumes before the decision ends again with the call."""
    with running_model([money("ann", 5)]) as model:
        deferring.run(model)
        waiting = deferring.desk.await_suspension()
        deferring.run(model, "resume")
        assert (find_effects(deferring), model.results) == ([], []), "nobody has decided yet"
        assert deferring.desk.decide("approve").id == waiting.id
        deferring.run(model, "resume")
    assert find_effects(deferring) == [("send_money", {"to": "ann", "amount": 5})]
    assert "send_money done" in model.texts()[0]
    assert deferring.desk.waiting() == []


def test_edit(deferring: Agent) -> None:
    with running_model([money("ann", 5)]) as model:
        deferring.run(model)
        deferring.desk.decide("approve", args={"to": "bob", "amount": 3})
        deferring.run(model, "resume")
    assert find_effects(deferring) == [("send_money", {"to": "bob", "amount": 3})]
    assert "bob" in model.texts()[0]


def test_deny(agent: Agent) -> None:
    with running_model([money("ann", 5)]) as model, agent.running(model) as child:
        agent.desk.decide("deny", message="Ann has left.")
        assert child.wait(PATIENCE_S) == 0
    assert find_effects(agent) == []
    assert "Ann has left." in model.texts()[0]


def test_changes(agent: Agent) -> None:
    """The model reads what to change, and its next call is the new version."""
    with running_model([money("ann", 5), money("ann", 4)]) as model, agent.running(model) as child:
        first = agent.desk.decide("deny", message="At most 4.", changes={"paths": ["args.amount"]})
        revised = agent.desk.await_suspension().items[0].revises
        assert revised is not None
        assert revised.suspension_id == first.id
        agent.desk.decide("approve")
        assert child.wait(PATIENCE_S) == 0
    assert find_effects(agent) == [("send_money", {"to": "ann", "amount": 4})]
    assert "At most 4. Change args.amount, and call" in model.texts()[0]


def test_value(agent: Agent) -> None:
    with running_model([money("ask", 0)]) as model, agent.running(model) as child:
        agent.desk.decide("value", value=7)
        assert child.wait(PATIENCE_S) == 0
    assert find_effects(agent) == [("send_money", {"to": "ask", "amount": 7})]


def test_timeout(agent: Agent) -> None:
    with running_model([money("late", 5)]) as model:
        agent.run(model)
    assert find_effects(agent) == []
    assert "Nobody answered in time." in model.texts()[0]


def test_batch(agent: Agent) -> None:
    """Claude Code asks about the calls of a turn one after the other, or at once."""
    decisions: dict[str, dict[str, Any]] = {
        "ann": {"action": "approve"},
        "bob": {"action": "deny", "message": "Not Bob."},
        "cid": {"action": "approve", "args": {"to": "cid", "amount": 9}},
    }
    calls = [money("ann", 1), mail("bob"), money("cid", 2), look("x"), mail("nobody")]
    with running_model([calls]) as model, agent.running(model) as child:
        while decisions:
            assert wait_until(lambda: bool(agent.desk.waiting()), PATIENCE_S), decisions
            for waiting in agent.desk.waiting():
                (item,) = waiting.items
                agent.desk.reviewer.decide(waiting.id, item, **decisions.pop(str(item.tool.args["to"])))
        assert child.wait(PATIENCE_S) == 0
    done = sorted((tool, sorted(map(str, args.values()))) for tool, args in find_effects(agent))
    assert done == [("look_up", ["x"]), ("send_money", ["1", "ann"]), ("send_money", ["9", "cid"])]
    assert "Not Bob." in model.texts()[1]
    assert "Nobody reads that" in model.texts()[4]


def test_twice(deferring: Agent) -> None:
    with running_model([money("ann", 1), look("x"), mail("bob")]) as model:
        deferring.run(model)
        first = deferring.desk.decide("approve")
        deferring.run(model, "resume")
        assert [tool for tool, _ in find_effects(deferring)] == ["send_money", "look_up"]
        assert deferring.desk.decide("approve").id != first.id
        deferring.run(model, "resume")
    assert [tool for tool, _ in find_effects(deferring)] == ["send_money", "look_up", "send_mail"]


def test_crash(deferring: Agent) -> None:
    """The resumed session asks about the call that it was killed in, which has used its permit."""
    with running_model([money("ann", 1)]) as model:
        deferring.run(model)
        deferring.desk.decide("approve")
        (deferring.desk.home / HOLD).touch()
        with deferring.running(model, "resume") as child:
            assert wait_until(lambda: bool(deferring.desk.effects()), PATIENCE_S)
            kill(child)
        deferring.run(model, "resume")
    assert len(find_effects(deferring)) == 1
    assert "let through before, once, so it may have run" in model.texts()[0]
    assert deferring.desk.waiting() == []


def test_late(agent: Agent) -> None:
    """Claude Code has saved the result, so the call does not run twice."""
    with running_model([money("ann", 1), mail("bob")]) as model:
        model.may_go_on.clear()
        with agent.running(model) as child:
            agent.desk.decide("approve")
            await_results(model, 1)
            agent.await_record("tool_result")
            kill(child)
        model.may_go_on.set()
        with agent.running(model, "resume") as child:
            agent.desk.decide("approve")
            assert child.wait(PATIENCE_S) == 0
    assert [tool for tool, _ in find_effects(agent)] == ["send_money", "send_mail"]


def test_race(deferring: Agent) -> None:
    """Of two processes that resume a session at once, one gets the permit."""
    with running_model([money("ann", 1)]) as model:
        deferring.run(model)
        deferring.desk.decide("approve")
        with deferring.running(model, "resume") as first, deferring.running(model, "resume") as second:
            first.wait(PATIENCE_S)
            second.wait(PATIENCE_S)
    assert len(find_effects(deferring)) == 1


def test_stale(deferring: Agent) -> None:
    """A decision never answers another call of the session, which went on with a prompt meanwhile."""
    with running_model([money("ann", 1), money("eve", 1000)]) as model:
        deferring.run(model)
        waiting = deferring.desk.await_suspension()
        deferring.run(model, "resume", "go on")
        deferring.desk.reviewer.decide(waiting.id, waiting.items[0], "approve")
        deferring.run(model, "resume")
        assert deferring.desk.await_suspension().items[0].tool.args["to"] == "eve"
    assert find_effects(deferring) == []
