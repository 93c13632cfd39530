"""Agents of Strands, Agent Framework and Google ADK behind the AG-UI proxy, each with its own released adapter."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.frameworks.agui.chats import Setup, read_error
from tests.frameworks.mcp.desks import Desk

pytestmark = pytest.mark.timeout(240)

ANN, BOB = {"to": "ann", "amount": 5}, {"to": "bob", "amount": 6}


@pytest.fixture(params=["agent_framework", "google_adk", "strands"])
def setup(desk: Desk, request: pytest.FixtureRequest) -> Iterator[Setup]:
    """An agent of each framework behind a proxy."""
    with Setup(desk, request.param) as started:
        yield started


def test_approved_call_runs_once_also_if_the_proxy_was_killed(setup: Setup) -> None:
    chat = setup.ask(("ann", 5))
    setup.kill("proxy")
    waits = setup.desk.decide("approve")
    assert (waits.items[0].tool.name, waits.items[0].tool.args) == ("send_money", ANN)
    setup.start("proxy")
    chat.resume()
    assert (setup.desk.effects(), chat.text) == ([ANN], "done: sent 5 to ann")
    chat.resume()
    assert setup.desk.effects() == [ANN]
    permit = setup.desk.reviewer.find(waits.id).items[0].permit
    assert permit is not None
    assert permit.report is not None
    assert permit.report.success
    assert "sent 5 to ann" in str(permit.report.output)


def test_denied_call_does_not_run(setup: Setup) -> None:
    chat = setup.ask(("ann", 5))
    setup.desk.decide("deny", message="too much")
    chat.resume({"approved": True})
    assert setup.desk.effects() == []


def test_edited_call_runs_as_edited_or_not_at_all(setup: Setup) -> None:
    chat = setup.ask(("ann", 5))
    setup.desk.decide("approve", args={"to": "ann", "amount": 1})
    chat.resume()
    assert setup.desk.effects() == ([{"to": "ann", "amount": 1}] if setup.kind == "agent_framework" else [])


def test_parallel_calls_are_answered_at_once(setup: Setup) -> None:
    chat = setup.ask(("ann", 5), ("bob", 6))
    waits = setup.desk.await_suspension()
    for item in waits.items:
        action: Any = "approve" if item.tool.args == BOB else "deny"
        setup.desk.reviewer.decide(waits.id, item, action)
    chat.resume()
    mixed = setup.kind != "agent_framework"  # which asks again about the denied call, and takes no answer to that
    assert setup.desk.effects() == ([BOB] if mixed else [])


def test_killed_agent_goes_on_if_it_keeps_its_sessions(setup: Setup) -> None:
    chat = setup.ask(("ann", 5))
    setup.desk.decide("approve")
    setup.kill("agent")
    setup.start("agent")
    if setup.kind == "agent_framework":
        assert "No pending approval" in read_error(chat.resume())
    else:
        chat.resume()
    assert setup.desk.effects() == ([] if setup.kind == "agent_framework" else [ANN])
