"""Agents and proxies that are killed between a question and its answer, or during a call."""

from threading import Thread

import httpx
import pytest

from launch.stops import wait_until
from tests.frameworks.agui.chats import Chat, Setup, read_error
from tests.frameworks.mcp.desks import PATIENCE_S

pytestmark = pytest.mark.timeout(240)

ANN = {"to": "ann", "amount": 5}


@pytest.mark.parametrize("killed", [["proxy"], ["agent"], ["proxy", "agent"]], ids="+".join)
def test_answer_outlives_what_is_killed_before_it(setup: Setup, killed: list[str]) -> None:
    chat = setup.chat()
    chat.ask(("ann", 5))
    for name in killed:
        setup.kill(name)
    setup.desk.decide("approve")
    for name in killed:
        setup.start(name)
    chat.resume()
    chat.resume()
    assert setup.desk.effects() == [ANN]


def test_denial_outlives_a_killed_proxy(setup: Setup) -> None:
    chat = setup.chat()
    chat.ask(("ann", 5))
    setup.kill("proxy")
    setup.desk.decide("deny", message="no")
    setup.start("proxy")
    chat.resume({"approved": True})
    assert setup.desk.effects() == []


def test_permit_is_not_redeemed_while_the_agent_is_away(setup: Setup) -> None:
    chat = setup.chat()
    chat.ask(("ann", 5))
    setup.desk.decide("approve")
    setup.kill("agent")
    assert "Nothing ran" in read_error(chat.resume())
    setup.start("agent")
    chat.resume()
    assert setup.desk.effects() == [ANN]


def test_call_is_in_doubt_if_the_agent_dies_during_it(setup: Setup) -> None:
    chat = setup.chat()
    chat.ask(("die", 5))
    setup.desk.decide("approve")
    assert "cut off" in read_error(chat.resume())
    setup.start("agent") if setup.running.pop("agent").wait() == 3 else None
    waits = setup.desk.await_suspension()
    assert waits.items[0].doubt is not None
    chat.resume()
    setup.desk.decide("value", value={"choice": "skip", "result": "sent by hand"})
    results = [event["content"] for event in chat.resume() if event["type"] == "TOOL_CALL_RESULT"]
    assert results == ["sent by hand"]
    assert len(setup.desk.effects()) == 1


def test_call_is_in_doubt_if_the_proxy_dies_during_it(setup: Setup) -> None:
    chat = setup.chat()
    chat.ask(("slow", 5))
    setup.desk.decide("approve")
    thread = Thread(target=resume_until_cut, args=(chat,))
    thread.start()
    assert wait_until(lambda: bool(setup.desk.effects()), PATIENCE_S)
    setup.kill("proxy")
    thread.join(PATIENCE_S)
    setup.start("proxy")
    assert "It may have run" in read_error(chat.resume())
    assert setup.desk.await_suspension().items[0].doubt is not None
    assert len(setup.desk.effects()) == 1


def resume_until_cut(chat: Chat) -> None:
    """Resume a run whose proxy is killed meanwhile."""
    with pytest.raises(httpx.TransportError):
        chat.resume()
