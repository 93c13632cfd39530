"""The MCP proxy between the official client and server, each in its own process."""

import json

import pytest

from tests.frameworks.mcp.desks import PATIENCE_S, Desk, open_client, running_http_server

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_proxy_forwards_an_approved_call_once(desk: Desk, mode: str) -> None:
    with open_client(desk, mode=mode) as client:
        number = client.pay("ann")
        waits = desk.decide("approve")
        assert client.read_result(number)["structured_content"] == {"sent": 7}
    (effect,) = desk.effects()
    assert effect["args"] == {"to": "ann", "amount": 7}
    assert effect["meta"]["sayso/idempotency-key"].startswith(waits.id)
    assert effect["key"] is False, "the server does not get the key of Sayso"
    ended = desk.reviewer.await_run(waits.run.id, PATIENCE_S)
    assert (ended.status, waits.items[0].tool.name) == ("completed", "send_money")


def test_proxy_holds_calls_of_an_http_server(desk: Desk) -> None:
    with running_http_server(desk) as server, open_client(desk, server=server) as client:
        number = client.pay("ann")
        desk.decide("approve")
        assert client.read_result(number)["structured_content"] == {"sent": 7}
    assert len(desk.effects()) == 1


def test_proxy_passes_allowed_calls_and_other_requests(desk: Desk) -> None:
    with open_client(desk) as client:
        allowed = client.read_result(client.request("call", tool="look_up", args={"what": "weather"}))
        assert allowed["content"][0]["text"] == "look_up done"
        tools, resources, read = client.read_result(client.request("list"))
    assert tools["tools"][0]["name"] == "look_up"
    assert resources["resources"][0]["uri"] == "note://one"
    assert read["contents"][0]["text"] == "a note"


def test_proxy_returns_a_denial_as_error(desk: Desk) -> None:
    with open_client(desk, "--name", "bank") as client:
        number = client.pay("ann")
        waits = desk.decide("deny", message="Ann was paid yesterday.")
        text = client.read_error(number)
    assert text == "bank.send_money was denied by admin: Ann was paid yesterday. It did not run. Continue without it."
    assert (waits.items[0].tool.name, desk.effects()) == ("bank.send_money", [])


def test_proxy_runs_edited_arguments_with_a_note(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("ann", 700)
        desk.decide("approve", args={"to": "ann", "amount": 70})
        result = client.read_result(number)
    assert "It ran with" in result["content"][0]["text"]
    assert '"amount":70' in result["content"][0]["text"]
    assert [effect["args"]["amount"] for effect in desk.effects()] == [70]


@pytest.mark.parametrize("amount", [2**53 + 1, 2**80])
def test_proxy_forwards_an_integer_exactly(desk: Desk, amount: int) -> None:
    with open_client(desk) as client:
        number = client.pay("ann", amount)
        waits = desk.decide("approve")
        assert client.read_result(number)["structured_content"] == {"sent": amount}
    assert waits.items[0].tool.args == {"to": "ann", "amount": amount}
    assert [effect["args"]["amount"] for effect in desk.effects()] == [amount]


@pytest.mark.parametrize(("edited", "amount"), [(2**62 + 1, 2**62 + 1), (3.0, 3)])
def test_proxy_forwards_an_edited_integer_exactly(desk: Desk, edited: float, amount: int) -> None:
    with open_client(desk) as client:
        number = client.pay("ann", 700)
        desk.decide("approve", args={"to": "ann", "amount": edited})
        assert f'"amount":{amount}}}' in client.read_result(number)["content"][0]["text"]
    (effect,) = desk.effects()
    assert json.dumps(effect["args"]["amount"]) == str(amount)


def test_proxy_sends_progress_while_waiting(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("ann")
        line = client.lines.get(timeout=PATIENCE_S)
        assert line["progress"] == f"send_money waits for a reviewer at {desk.stack.url}"
        desk.decide("approve")
        assert client.read_result(number)["is_error"] is False
