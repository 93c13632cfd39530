"""A flow of CrewAI behind the AG-UI proxy: it pays if people answer so, and a refusal would be its first outcome."""

from collections.abc import Iterator
from typing import Any

import pytest

from sayso.client.operations import Action
from tests.frameworks.agui.chats import Setup, read_error
from tests.frameworks.mcp.desks import Desk

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def setup(desk: Desk) -> Iterator[Setup]:
    """A flow behind a proxy."""
    with Setup(desk, "crewai") as started:
        yield started


def answer(setup: Setup, value: str) -> None:
    """Approve what the flow asks, with an answer."""
    (item,) = setup.desk.await_suspension().items
    details: Any = item.tool.args["details"]
    assert details["crewai"]["output"] == [{"to": "ann", "amount": 5}]
    setup.desk.decide("approve", args={**item.tool.args, "answer": value})


@pytest.mark.parametrize(("value", "paid"), [("pay", [{"to": "ann", "amount": 5}]), ("leave", [])])
def test_flow_goes_on_once_with_the_answer_of_people(setup: Setup, value: str, paid: Any) -> None:
    chat = setup.ask(("ann", 5))
    for killed in ("agent", "proxy"):
        setup.kill(killed)
    answer(setup, value)
    for started in ("agent", "proxy"):
        setup.start(started)
    assert chat.resume("pay")[-1]["type"] == "RUN_FINISHED"
    chat.resume("pay")
    assert setup.desk.effects() == paid


def test_refusal_reaches_no_flow(setup: Setup) -> None:
    actions: tuple[Action, ...] = ("deny", "approve")
    for refuse in actions:  # an approval without an answer is none
        chat = setup.ask(("ann", 5))
        setup.desk.decide(refuse)
        assert "stays as it is" in read_error(chat.resume("pay"))
    chat = setup.ask(("ann", 5))
    assert "stays as it is" in read_error(chat.resume(status="cancelled"))
    assert setup.desk.waiting() == []
    assert setup.desk.effects() == []
