"""The client's own gates, synchronous and asynchronous, against a running Sayso."""

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
    made = desk.provision(instance_name="gates")
    return str(made["credential"]["token"])


@pytest.fixture
def client(desk: Desk, token: str) -> Iterator[Client]:
    client = Client(desk.base_url, token)
    yield client
    client.close()


def call(tool: str, **arguments: object) -> Call:
    """A call that nobody made before."""
    return Call(key=uuid.uuid4().hex, tool=tool, arguments=arguments, reasoning="It was asked for.", server="shop")


def fresh(stem: str) -> str:
    """A tool of this test alone."""
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def decide_soon(desk: Desk, tool: str, action: str, message: str | None = None) -> threading.Thread:
    """Decide as soon as somebody waits."""
    thread = threading.Thread(target=desk.decide, args=(tool, action, message))
    thread.start()
    return thread


def test_an_approved_call_runs_once_and_its_outcome_is_kept(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    asked = call(tool, amount=20.5, whole=3, real=3.0, small=1e-7, yes=True, nothing=None, nested={"a": [1, 1.0, "1"]})
    decided = decide_soon(desk, tool, "approve")
    with Gate(client).guard(asked) as verdict:
        assert isinstance(verdict, Allow)
    decided.join()

    assert client.get(verdict.request_id).consumption.outcome.status == "succeeded"
    again = Gate(client).check(asked)
    assert isinstance(again, Deny)
    assert again.status == "consumed"


def test_a_call_that_fails_is_reported_as_failed(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    decided = decide_soon(desk, tool, "approve")
    with pytest.raises(ZeroDivisionError), Gate(client).guard(call(tool)) as verdict:
        raise ZeroDivisionError
    decided.join()
    assert client.get(verdict.request_id).consumption.outcome.status == "failed"


def test_a_denial_brings_the_reviewers_words(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    decided = decide_soon(desk, tool, "deny", "Never delivered")
    verdict = Gate(client).check(call(tool))
    decided.join()
    assert isinstance(verdict, Deny)
    assert verdict.status == "denied"
    assert "Never delivered" in verdict.reason


def test_the_rules_allow_and_deny_at_once(client: Client) -> None:
    assert isinstance(Gate(client).check(call("look_up", order="A-1")), Allow)
    denied = Gate(client).check(call("erase"))
    assert isinstance(denied, Deny)
    assert "Nobody erases" in denied.reason


def test_what_nobody_decides_expires(client: Client) -> None:
    verdict = Gate(client, timeout="1s").check(call(fresh("slow")))
    assert isinstance(verdict, Deny)
    assert verdict.status == "expired"


def test_who_gives_up_waiting_cancels(desk: Desk, client: Client) -> None:
    verdict = Gate(client, wait_limit=0.2).check(call(fresh("slow")))
    assert isinstance(verdict, Deny)
    assert client.get(str(verdict.request_id)).status == "cancelled"


def test_of_many_that_come_at_once_with_one_approval_one_runs(desk: Desk, client: Client) -> None:
    tool = fresh("refund")
    asked = call(tool)
    assert isinstance(Gate(client, mode="async").check(asked), Pending)
    desk.decide(tool, "approve")
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda _: Gate(client, mode="async").check(asked), range(8)))
    assert sum(isinstance(verdict, Allow) for verdict in verdicts) == 1


async def test_the_asynchronous_gate_waits_and_pauses(desk: Desk, token: str) -> None:
    client = AsyncClient(desk.base_url, token)
    tool = fresh("refund")
    waiting = asyncio.create_task(AsyncGate(client).check(call(tool, amount=1)))
    await asyncio.to_thread(desk.decide, tool, "approve")
    assert isinstance(await waiting, Allow)

    paused = call(fresh("refund"))
    gate = AsyncGate(client, mode="async")
    assert isinstance(await gate.check(paused), Pending)
    await asyncio.to_thread(desk.decide, paused.tool, "deny", "No")
    verdict = await gate.check(paused)
    assert isinstance(verdict, Deny)
    assert "No" in verdict.reason
    await client.aclose()


def test_a_deleted_instance_can_do_nothing_and_leaves_nothing_waiting(desk: Desk) -> None:
    made = desk.provision(instance_name="short-lived")
    client = Client(desk.base_url, made["credential"]["token"])
    tool = fresh("refund")
    assert isinstance(Gate(client, mode="async").check(call(tool)), Pending)
    assert desk.waiting(tool)
    desk.delete(made["instance"]["id"])

    refused = Gate(client).check(call(tool))
    assert isinstance(refused, Deny)
    assert "credential" in refused.reason

    def gone() -> bool | None:
        found = desk.reviewer.get("/suspensions", params={"limit": 200}).json()["suspensions"]
        return None if any(one["items"][0]["tool"]["name"] == tool for one in found) else True

    assert wait_until(gone)
    client.close()
