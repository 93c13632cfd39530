"""Agents and proxies that are killed between a question and its answer, or during a call."""

import json
from threading import Thread
from typing import Any

import httpx
import pytest

from launch.stops import wait_until
from sayso.adapters.agui.proxies import FAILED, AgUiProxy
from sayso.adapters.agui.streams import write_event
from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from tests.frameworks.agui.chats import Chat, Setup, read_error
from tests.frameworks.mcp.desks import PATIENCE_S, Desk

pytestmark = pytest.mark.timeout(240)

ANN = {"to": "ann", "amount": 5}


@pytest.mark.parametrize("killed", [["proxy"], ["agent"], ["proxy", "agent"]], ids="+".join)
def test_answer_outlives_what_is_killed_before_it(setup: Setup, killed: list[str]) -> None:
    chat = setup.ask(("ann", 5))
    for name in killed:
        setup.kill(name)
    setup.desk.decide("approve")
    for name in killed:
        setup.start(name)
    chat.resume()
    chat.resume()
    assert setup.desk.effects() == [ANN]


def test_denial_outlives_a_killed_proxy(setup: Setup) -> None:
    chat = setup.ask(("ann", 5))
    setup.kill("proxy")
    setup.desk.decide("deny", message="no")
    setup.start("proxy")
    chat.resume({"approved": True})
    assert setup.desk.effects() == []


def test_permit_is_not_redeemed_while_the_agent_is_away(setup: Setup) -> None:
    chat = setup.ask(("ann", 5))
    setup.desk.decide("approve")
    setup.kill("agent")
    assert "Nothing ran" in read_error(chat.resume())
    setup.start("agent")
    chat.resume()
    assert setup.desk.effects() == [ANN]


def test_call_is_in_doubt_if_the_agent_dies_during_it(setup: Setup) -> None:
    chat = setup.ask(("die", 5))
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
    chat = setup.ask(("slow", 5))
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


async def test_call_is_in_doubt_if_the_proxy_fails_during_it(desk: Desk) -> None:
    run_input: JsonObject = {"threadId": new_id("thread"), "runId": "r", "messages": []}

    async def ask_then_fail(request: httpx.Request) -> httpx.Response:
        if request.method == "OPTIONS":
            return httpx.Response(200)
        if "resume" in json.loads(request.content):
            raise RuntimeError("the password is 1234")
        outcome: JsonObject = {
            "type": "interrupt",
            "interrupts": [{"id": "i", "reason": "confirmation", "message": "Go on?"}],
        }
        return httpx.Response(200, content=write_event({"type": "RUN_FINISHED", "outcome": outcome}))

    client = AsyncClient(desk.stack.url, desk.stack.agent_key)
    async with httpx.AsyncClient(transport=httpx.MockTransport(ask_then_fail)) as agent, client:
        proxy = AgUiProxy("http://agent", client, agent)
        waiting: Any
        (waiting,) = [event async for event in proxy.run(run_input, {})]
        desk.decide("approve")
        entry: JsonObject = {"interruptId": waiting["outcome"]["interrupts"][0]["id"], "status": "resolved"}
        (end,) = [event async for event in proxy.run({**run_input, "resume": [entry]}, {})]
    assert (end["type"], end["message"]) == ("RUN_ERROR", FAILED)
    assert desk.await_suspension().items[0].doubt is not None


def resume_until_cut(chat: Chat) -> None:
    """Resume a run whose proxy is killed meanwhile."""
    with pytest.raises(httpx.TransportError):
        chat.resume()
