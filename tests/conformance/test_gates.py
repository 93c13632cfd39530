"""The client's gates, synchronous and asynchronous, against a running Sayso."""

import asyncio
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from agentapprovalprotocol import Allow, AsyncClient, AsyncGate, Call, Client, Deny, Gate, Pending

from tests.conformance.desks import Desk, wait_until


@pytest.fixture
def token(desk: Desk) -> str:
    created = desk.provision(instance_name="gates")
    return str(created["credential"]["token"])


@pytest.fixture
def client(desk: Desk, token: str) -> Iterator[Client]:
    client = Client(desk.base_url, token)
    yield client
    client.close()


def call(tool: str, **arguments: object) -> Call:
    """Return a call with a new key."""
    return Call(
        key=uuid.uuid4().hex, tool=tool, arguments=arguments, reasoning="The customer asked for it.", server="shop"
    )


def fresh(stem: str) -> str:
    """Return a unique tool name."""
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def decide_soon(desk: Desk, tool: str, action: str, message: str | None = None) -> threading.Thread:
    """Decide in a thread as soon as the item is pending."""
    thread = threading.Thread(target=desk.decide, args=(tool, action, message))
    thread.start()
    return thread


def test_approved_call_runs_once_and_keeps_its_outcome(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    request = call(
        tool, amount=20.5, whole=3, real=3.0, small=1e-7, yes=True, nothing=None, nested={"a": [1, 1.0, "1"]}
    )
    decided = decide_soon(desk, tool, "approve")
    with Gate(client).guard(request) as verdict:
        assert isinstance(verdict, Allow)
    decided.join()

    assert client.get(verdict.request_id).consumption.outcome.status == "succeeded"
    again = Gate(client).check(request)
    assert isinstance(again, Deny)
    assert again.status == "consumed"


def test_failing_call_is_reported_as_failed(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    decided = decide_soon(desk, tool, "approve")
    with pytest.raises(ZeroDivisionError), Gate(client).guard(call(tool)) as verdict:
        raise ZeroDivisionError
    decided.join()
    assert client.get(verdict.request_id).consumption.outcome.status == "failed"


def test_denial_contains_the_reviewers_message(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    decided = decide_soon(desk, tool, "deny", "Never delivered")
    verdict = Gate(client).check(call(tool))
    decided.join()
    assert isinstance(verdict, Deny)
    assert verdict.status == "denied"
    assert "Never delivered" in verdict.reason


def test_rules_allow_and_deny_immediately(client: Client) -> None:
    assert isinstance(Gate(client).check(call("look_up", order="A-1")), Allow)
    denied = Gate(client).check(call("erase"))
    assert isinstance(denied, Deny)
    assert "Nobody erases" in denied.reason


def test_undecided_call_expires(client: Client) -> None:
    verdict = Gate(client, timeout="1s").check(call(fresh("slow")))
    assert isinstance(verdict, Deny)
    assert verdict.status == "expired"


def test_wait_limit_cancels_the_request(desk: Desk, client: Client) -> None:
    verdict = Gate(client, wait_limit=0.2).check(call(fresh("slow")))
    assert isinstance(verdict, Deny)
    assert client.get(str(verdict.request_id)).status == "cancelled"


def test_concurrent_checks_of_one_approval_allow_one(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    request = call(tool)
    assert isinstance(Gate(client, mode="async").check(request), Pending)
    desk.decide(tool, "approve")
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda _: Gate(client, mode="async").check(request), range(8)))
    assert sum(isinstance(verdict, Allow) for verdict in verdicts) == 1


async def test_async_gate_waits_and_suspends(desk: Desk, token: str) -> None:
    client = AsyncClient(desk.base_url, token)
    tool = fresh("refund")
    waiting = asyncio.create_task(AsyncGate(client).check(call(tool, amount=1)))
    await asyncio.to_thread(desk.decide, tool, "approve")
    assert isinstance(await waiting, Allow)

    suspended = call(fresh("refund"))
    gate = AsyncGate(client, mode="async")
    assert isinstance(await gate.check(suspended), Pending)
    await asyncio.to_thread(desk.decide, suspended.tool, "deny", "No")
    verdict = await gate.check(suspended)
    assert isinstance(verdict, Deny)
    assert "No" in verdict.reason
    await client.aclose()


def test_deleted_instance_is_refused_and_has_no_pending_items(desk: Desk) -> None:
    created = desk.provision(instance_name="short-lived")
    client = Client(desk.base_url, created["credential"]["token"])
    tool = fresh("refund")
    assert isinstance(Gate(client, mode="async").check(call(tool)), Pending)
    assert desk.waiting(tool)
    desk.delete(created["instance"]["id"])

    refused = Gate(client).check(call(tool))
    assert isinstance(refused, Deny)
    assert "credential" in refused.reason

    def gone() -> bool | None:
        found = desk.reviewer.get("/suspensions", params={"limit": 200}).json()["suspensions"]
        return None if any(one["items"][0]["tool"]["name"] == tool for one in found) else True

    assert wait_until(gone)
    client.close()
