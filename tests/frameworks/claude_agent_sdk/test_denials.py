"""The denials of the support table for the Claude Agent SDK: in nineteen ways a call is denied, and does not run."""

import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from launch.stops import wait_until
from sayso import errors
from sayso.client import administration
from sayso.core.clock import now_ms
from sayso.wire.suspensions import SuspensionView
from service.core.desk.freezing import HOLDS_WITHIN_MS
from tests.frameworks.claude_agent_sdk.agents import Agent, kill
from tests.frameworks.claude_agent_sdk.models import running_model
from tests.frameworks.denials import BY_PEOPLE
from tests.frameworks.kinds import CLAUDE
from tests.frameworks.mcp.desks import PATIENCE_S, Desk
from tests.frameworks.test_conformance import mail, money
from tests.frameworks.test_denials import APPROVE, DENIALS, DENY

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(params=[CLAUDE])
def agent(desk: Desk) -> Agent:
    """An agent of the SDK with tools of its own."""
    return Agent(desk, "sdk")


def test_denied_by_people(agent: Agent) -> None:
    decisions = {way: [DENIALS.get(way, DENY)] for way in BY_PEOPLE} | {"ann": [APPROVE]}
    decisions["twin"].append(APPROVE)
    calls = [*(money(way, 5) for way in BY_PEOPLE), money("twin", 5), mail("ann")]
    with running_model([calls]) as model, agent.running(model) as child:
        decide_all(agent.desk, decisions)
        assert child.wait(PATIENCE_S) == 0
    assert list_ran(agent) == ["ann", "twin"]
    text = "".join(model.texts())
    assert all(reason in text for reason in ("Ann has gone.", "approved", "Not again.", "Change args.amount"))


def test_denied_by_rules(agent: Agent) -> None:
    """A hook gets no definition of a tool, so the way `changed` has no call here."""
    calls = [mail("nobody"), money("late", 5), money("cancelled", 5), money("frozen", 5), mail("ann")]
    with running_model([calls]) as model, agent.running(model) as child:
        cancelled = await_call(agent.desk, "cancelled")
        agent.desk.reviewer.cancel(cancelled.run.id)
        with pytest.raises(errors.SaysoError):
            decide(agent.desk, cancelled, APPROVE)
        frozen = await_call(agent.desk, "frozen")
        scope = f"agent:{frozen.run.agent}"
        agent.desk.reviewer.exchange(administration.freeze(scope, "", confirm=True))
        everywhere_ms = now_ms() + HOLDS_WITHIN_MS
        try:
            assert wait_until(lambda: now_ms() > everywhere_ms, PATIENCE_S)
            decide(agent.desk, frozen, APPROVE)
            agent.desk.reviewer.cancel(frozen.run.id)
        finally:
            agent.desk.reviewer.exchange(administration.unfreeze(scope))
        decide(agent.desk, await_call(agent.desk, "ann"), APPROVE)
        assert child.wait(PATIENCE_S) == 0
    assert list_ran(agent) == ["ann"]
    assert all(reason in "".join(model.texts()) for reason in ("Nobody reads that", "Nobody answered in time."))
    check_start(agent)


def check_start(agent: Agent) -> None:
    """Check that a session that resumes after its call's time to start asks about the call again."""
    later = Agent(agent.desk, "sdk", defers=True)
    with running_model([money("soon", 5)]) as model:
        later.run(model)
        first = later.desk.await_suspension()
        decide(later.desk, first, APPROVE)
        outcome = later.desk.reviewer.find(first.id).items[0].outcome
        assert outcome is not None
        assert outcome.start_by is not None
        start_by_ms = datetime.fromisoformat(str(outcome.start_by)).timestamp() * 1000
        assert wait_until(lambda: now_ms() > start_by_ms, PATIENCE_S)
        later.run(model, "resume")
        again = later.desk.await_suspension()
        assert again.id != first.id
        decide(later.desk, again, DENY)
        later.run(model, "resume")
    assert list_ran(later) == ["ann"]
    assert "Not again." in model.texts()[0]


def test_denied_again(agent: Agent) -> None:
    """No denial ends a run of Claude Code, so the way `ending` has no call here."""
    ways = ("again", "remembered", "reversed")
    calls = [money(way, 5) for way in ways]
    with running_model([calls, calls, money("killed", 5)]) as model:
        with agent.running(model) as child:
            reversed_ = decide_all(agent.desk, {way: [DENY] for way in ways})["reversed"]
            with pytest.raises(errors.AlreadyDecided):
                decide(agent.desk, reversed_, APPROVE)
            decide_all(agent.desk, {way: [DENY] for way in ("again", "reversed")})
            killed = await_call(agent.desk, "killed")
            agent.await_record("killed")
            kill(child)
        decide(agent.desk, killed, DENY)
        with pytest.raises(errors.AlreadyDecided):
            decide(agent.desk, killed, APPROVE)
        with agent.running(model, "resume") as first, agent.running(model, "resume") as second:
            assert wait_until(lambda: deny_until_ended(agent.desk, first, second), PATIENCE_S)
            assert (first.returncode, second.returncode) == (0, 0)
    assert agent.desk.waiting() == []
    assert list_ran(agent) == []
    assert "denied this very call before: Not again." in "".join(model.texts())


def deny_until_ended(desk: Desk, *children: subprocess.Popen[bytes]) -> bool:
    """Deny what waits, such as the call of a process that found the denial taken. Return whether all have ended."""
    for waiting in desk.waiting():
        decide(desk, waiting, DENY)
    return all(child.poll() is not None for child in children)


def decide(desk: Desk, waiting: SuspensionView, decision: dict[str, Any]) -> None:
    """Decide the item of a call."""
    desk.reviewer.decide(waiting.id, waiting.items[0], **decision)


def decide_all(desk: Desk, decisions: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, SuspensionView]:
    """Decide the calls to each recipient in order, as they are asked about, and return the last ones."""
    undecided = {to: list(each) for to, each in decisions.items()}
    decided = dict[str, SuspensionView]()
    while any(undecided.values()):
        assert wait_until(lambda: bool(desk.waiting()), PATIENCE_S), undecided
        for waiting in desk.waiting():
            to = str(waiting.items[0].tool.args["to"])
            decide(desk, waiting, undecided[to].pop(0))
            decided[to] = waiting
    return decided


def await_call(desk: Desk, to: str) -> SuspensionView:
    """Wait until the call to a recipient is asked about."""

    def find() -> list[SuspensionView]:
        return [waiting for waiting in desk.waiting() if waiting.items[0].tool.args["to"] == to]

    assert wait_until(lambda: bool(find()), PATIENCE_S), desk.waiting()
    return find()[0]


def list_ran(agent: Agent) -> list[str]:
    """Return the recipients of the calls that ran, in alphabetical order."""
    return sorted(effect["args"]["to"] for effect in agent.desk.effects())
