"""Held calls as tasks of the extension of 2026-07-28: polled, killed, cancelled, and of others."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from launch.stops import wait_until
from sayso.client.administration import freeze, unfreeze
from tests.frameworks.mcp.desks import PATIENCE_S, Desk, McpClient, open_client
from tests.journeys.stacks import await_restart, children_of, kill

pytestmark = pytest.mark.timeout(240)

METHODS = ("get", "update", "cancel")
UNKNOWN_TASK, MISSING_CAPABILITY, UNKNOWN_METHOD = -32602, -32021, -32601


@contextmanager
def open_tasks(desk: Desk, *options: str, key: str | None = None) -> Iterator[McpClient]:
    """Connect a client that takes tasks."""
    with open_client(desk, *options, mode="tasks", SAYSO_KEY=key or desk.stack.agent_key) as client:
        yield client


def hold(client: McpClient, to: str = "ann", amount: int = 7) -> str:
    """Make a call that is held, and return its task."""
    task = client.read_result(client.pay(to, amount, action="once"))
    assert (task["result_type"], task["status"]) == ("task", "working"), task
    return str(task["task_id"])


def ask(client: McpClient, task_id: str, method: str = "get") -> Any:
    """Send a request about a task and return the response."""
    return client.read_result(client.request(f"tasks/{method}", task=task_id))


def settle(client: McpClient, task_id: str) -> Any:
    """Poll a task until it does not work any more."""
    states: list[Any] = []

    def is_over() -> bool:
        states.append(ask(client, task_id))
        return bool(states[-1].get("status") != "working")

    assert wait_until(is_over, PATIENCE_S), states[-1]
    return states[-1]


def settle_error(client: McpClient, task_id: str) -> str:
    """Poll a task to its end and return the error that its result is for the model."""
    task = settle(client, task_id)
    assert (task["status"], task["result"]["isError"]) == ("completed", True), task
    return str(task["result"]["content"][0]["text"])


def find_proxy(client: McpClient) -> int:
    """Return the process id of the proxy that the client started."""
    (proxy,) = children_of(client.child.pid)
    return proxy


def test_held_call_is_a_task_and_runs_once_when_polled(desk: Desk) -> None:
    with open_tasks(desk) as client:
        created = client.read_result(client.pay("ann", action="once"))
        waits = desk.await_suspension()
        assert (created["result_type"], created["task_id"]) == ("task", waits.id)
        polled = ask(client, waits.id)
        assert (polled["status"], polled["result_type"]) == ("working", "complete")
        assert f"/items/{waits.id}/" in polled["status_message"]
        terms = waits.items[0].terms
        assert waits.deadline_at is not None
        until_deadline_ms = (waits.deadline_at - waits.created_at).total_seconds() * 1000
        assert polled["ttl_ms"] == pytest.approx(until_deadline_ms + terms.start_by_s * 1000, abs=1)
        assert 1000 <= polled["poll_interval_ms"] <= 30_000
        desk.decide("approve")
        assert desk.effects() == [], "the call starts when its task is polled"
        first, again = settle(client, waits.id), ask(client, waits.id)
        assert first["result"]["structuredContent"] == again["result"]["structuredContent"] == {"sent": 7}
        assert first["status"] == again["status"] == "completed"
    (effect,) = desk.effects()
    assert effect["args"] == {"to": "ann", "amount": 7}
    assert desk.reviewer.await_run(waits.run.id, PATIENCE_S).status == "completed"


def test_client_library_polls_a_task_to_its_result(desk: Desk) -> None:
    with open_tasks(desk, "--name", "bank") as client:
        number = client.pay("ann", 700)
        desk.decide("approve", args={"to": "ann", "amount": 70})
        result = client.read_result(number)
    assert "It ran with" in result["content"][0]["text"]
    assert [effect["args"]["amount"] for effect in desk.effects()] == [70]


def test_allowed_call_is_no_task(desk: Desk) -> None:
    with open_tasks(desk) as client:
        result = client.read_result(client.request("once", tool="look_up", args={"what": "weather"}))
    assert result["content"][0]["text"] == "look_up done"


@pytest.mark.parametrize("to", ["ann", "late"])
def test_task_of_a_denied_or_expired_call_has_the_reason(desk: Desk, to: str) -> None:
    with open_tasks(desk) as client:
        task_id = hold(client, to)
        if to == "ann":
            desk.decide("deny", message="Ann was paid yesterday.")
        reason = "Ann was paid yesterday." if to == "ann" else "Nobody answered in time."
        first, again = settle_error(client, task_id), settle_error(client, task_id)
    assert reason in first
    assert (first, desk.effects()) == (again, [])


def test_task_of_a_call_that_was_not_polled_in_time_does_not_run(desk: Desk) -> None:
    with open_tasks(desk) as client:
        task_id = hold(client, "soon")
        waits = desk.decide("approve")
        assert desk.reviewer.await_run(waits.run.id, PATIENCE_S).status == "failed"
        assert "nobody asked for its result in time. It did not run." in settle_error(client, task_id)
    assert desk.effects() == []


def test_task_of_an_approved_call_waits_while_its_tool_is_frozen(desk: Desk) -> None:
    with open_tasks(desk) as client:
        task_id = hold(client)
        desk.decide("approve")
        desk.reviewer.exchange(freeze("tool:send_money", "The bank is closed", confirm=False))
        frozen = ask(client, task_id)
        assert (frozen["status"], desk.effects()) == ("working", [])
        assert "frozen" in frozen["status_message"]
        desk.reviewer.exchange(unfreeze("tool:send_money"))
        assert settle(client, task_id)["result"]["structuredContent"] == {"sent": 7}
    assert len(desk.effects()) == 1


def test_cancelled_task_withdraws_its_call(desk: Desk) -> None:
    with open_tasks(desk) as client:
        task_id = hold(client)
        waits = desk.await_suspension()
        assert ask(client, task_id, "update")["result_type"] == "complete"
        assert [ask(client, task_id, "cancel")["result_type"] for _ in range(2)] == ["complete"] * 2
        assert desk.reviewer.await_run(waits.run.id, PATIENCE_S).status == "cancelled"
        task = settle(client, task_id)
    assert task["status"] == "cancelled"
    assert "The MCP client cancelled this call." in task["status_message"]
    assert (desk.waiting(), desk.effects()) == ([], [])


def test_failed_call_has_the_same_result_again(desk: Desk) -> None:
    with open_tasks(desk) as client:
        task_id = hold(client, "nobody")
        desk.decide("approve")
        assert [settle_error(client, task_id) for _ in range(2)] == ["no such person"] * 2
    assert len(desk.effects()) == 1


def test_task_survives_kills_of_client_proxy_and_service(desk: Desk) -> None:
    with open_tasks(desk) as client:
        tasks = [hold(client, name) for name in ("ann", "bob", "eve")]
        os.kill(client.child.pid, signal.SIGKILL)
    with open_tasks(desk) as client:
        assert [ask(client, task_id)["status"] for task_id in tasks] == ["working"] * 3
        os.kill(find_proxy(client), signal.SIGKILL)
    await_restart(desk.stack, "service", kill(desk.stack, "service"))
    assert wait_until(lambda: len(desk.waiting()) == 3, PATIENCE_S)
    for waits in desk.waiting():
        denied = waits.items[0].tool.args["to"] == "bob"
        desk.reviewer.decide(waits.id, waits.items[0], "deny" if denied else "approve")
    with open_tasks(desk) as client:
        results = [settle(client, task_id)["result"] for task_id in tasks for _ in range(2)]
    assert [result.get("isError", False) for result in results] == [False, False, True, True, False, False]
    assert [effect["args"]["to"] for effect in desk.effects()] == ["ann", "eve"]


def test_task_polled_by_two_proxies_runs_once(desk: Desk) -> None:
    with open_tasks(desk) as first, open_tasks(desk) as second:
        task_id = hold(first)
        desk.decide("approve")
        numbers = [client.request("tasks/get", task=task_id) for client in (first, second) for _ in range(5)]
        for client, number in zip((first, second), (numbers[4], numbers[9]), strict=True):
            client.read_result(number)
            assert settle(client, task_id)["result"]["structuredContent"] == {"sent": 7}
    assert len(desk.effects()) == 1


def test_started_call_outlives_the_client_that_polled_its_task(desk: Desk) -> None:
    with open_tasks(desk) as other:
        with open_tasks(desk) as client:
            task_id = hold(client, "gate")
            desk.decide("approve")
            assert ask(client, task_id)["status_message"] == "send_money runs."
            os.kill(client.child.pid, signal.SIGKILL)
            client.child.wait()
        assert ask(other, task_id, "cancel")["result_type"] == "complete", "a started call ends by itself"
        assert ask(other, task_id)["status"] == "working"
        (desk.home / "open").touch()
        assert settle(other, task_id)["result"]["structuredContent"] == {"sent": 7}
    assert len(desk.effects()) == 1


def test_task_is_in_doubt_if_the_proxy_is_killed_during_its_call(desk: Desk) -> None:
    with open_tasks(desk) as client, open_tasks(desk) as other:
        task_id = hold(client, "slow")
        waits = desk.decide("approve")
        client.request("tasks/get", task=task_id)
        assert wait_until(lambda: len(desk.effects()) == 1, PATIENCE_S)
        assert ask(other, task_id)["status"] == "working", "another process runs it"
        os.kill(find_proxy(client), signal.SIGKILL)
        assert "It may have run. Check its effect first." in settle_error(other, task_id)
    (item,) = desk.reviewer.find(waits.id).items
    assert item.permit is not None
    assert (item.permit.report, len(desk.effects())) == (None, 1)


def test_task_is_in_doubt_if_the_server_dies(desk: Desk) -> None:
    with open_tasks(desk) as client:
        task_id = hold(client, "die")
        desk.decide("approve")
        assert "may have run" in settle_error(client, task_id)
    with open_tasks(desk) as client:
        assert "may have run" in settle_error(client, task_id)
    assert len(desk.effects()) == 1


def test_task_of_a_tool_that_changed_after_its_review_does_not_run(desk: Desk) -> None:
    with open_tasks(desk) as client:
        task_id = hold(client)
        (desk.home / "changed").touch()
        desk.decide("approve")
        assert [("The server changed send_money" in settle_error(client, task_id)) for _ in range(2)] == [True, True]
    assert desk.effects() == []


def test_task_of_another_credential_or_server_is_unknown(desk: Desk) -> None:
    key = desk.reviewer.create_key("stranger").key
    with open_tasks(desk) as client:
        task_id = hold(client)
        with open_tasks(desk, key=key) as stranger, open_tasks(desk, "--name", "bank") as other:
            for task, unknown in ((stranger, task_id), (other, task_id), (client, "sus_0"), (client, "../runs")):
                codes = [ask(task, unknown, method).get("code") for method in METHODS]
                assert codes == [UNKNOWN_TASK] * 3
        assert ask(client, task_id)["status"] == "working"


@pytest.mark.parametrize(("mode", "code"), [("auto", MISSING_CAPABILITY), ("legacy", UNKNOWN_METHOD)])
def test_client_that_does_not_name_the_extension_gets_no_tasks(desk: Desk, mode: str, code: int) -> None:
    with open_client(desk, "--wait", "0", mode=mode) as client:
        held = client.read_result(client.pay("ann", action="once"))
        assert held["result_type"] != "task"
        waits = desk.await_suspension()
        assert [ask(client, waits.id, method)["code"] for method in METHODS] == [code] * 3
        capabilities = client.read_result(client.request("capabilities"))
        assert ("io.modelcontextprotocol/tasks" in capabilities.get("extensions", {})) is (mode == "auto")
        assert "tasks" not in capabilities


def test_call_with_an_experimental_task_of_2025_waits(desk: Desk) -> None:
    with open_client(desk, mode="legacy") as client:
        number = client.pay("ann", action="augmented")
        desk.decide("approve")
        assert client.read_result(number)["structured_content"] == {"sent": 7}
    assert len(desk.effects()) == 1
