"""Gated calls under a key whose agent was deployed anew between two attempts, at a running service."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from httpx import ASGITransport
from pydantic import Field

from sayso import AsyncClient, gate
from sayso.core.canonical_json import JsonObject
from sayso.errors import CallFailed, Denied, IdempotencyConflict, InDoubt, Suspended, Withdrawn
from service.core.settings import Settings
from tests.service.worlds import World
from tests.waits import until

Refund = Callable[..., Awaitable[str]]
POLICY = """
version: 1
default: request_approval
rules:
  - {id: too-much, tool: refund, when: args.amount > 500, action: deny, reason: Nobody refunds that much.}
  - id: night
    tool: refund
    when: args.amount == 7
    action: request_approval
    terms: {timeout_s: 0, fallback: {action: deny, message: Nobody is here.}}
"""
RUNS: list[JsonObject] = []


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml")


@pytest.fixture(autouse=True)
def empty() -> None:
    RUNS.clear()


async def refund(order: str, amount: float) -> str:
    """Pay a customer back."""
    RUNS.append({"order": order, "amount": amount})
    return f"paid {amount:g}"


def write_docstring() -> Any:
    async def refund(order: str, amount: float) -> str:
        """Pay a customer back at once."""
        RUNS.append({"order": order, "amount": amount})
        return f"paid {amount:g}"

    return refund


def add_parameter() -> Any:
    async def refund(order: str, amount: float, currency: str = "EUR") -> str:
        """Pay a customer back."""
        RUNS.append({"order": order, "amount": amount, "currency": currency})
        return f"paid {amount:g} {currency}"

    return refund


def describe_schema() -> Any:
    async def refund(order: str, amount: Annotated[float, Field(description="In euros.")]) -> str:
        """Pay a customer back."""
        RUNS.append({"order": order, "amount": amount})
        return f"paid {amount:g}"

    return refund


EDITS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "docstring": (write_docstring(), {}, "description"),
    "optional parameter": (add_parameter(), {}, "parameters"),
    "step": (refund, {"step": 2}, "step"),
    "thread_id": (refund, {"thread_id": "chat-17"}, "thread_id"),
    "idempotent": (refund, {"idempotent": True}, "idempotent"),
    "description in the schema": (describe_schema(), {}, "parameters"),
}


def deploy(world: World, function: Any = refund, **options: Any) -> Refund:
    """Return the gated function of a new process."""
    client = AsyncClient("http://sayso.test", world.tokens["demo"], transport=ASGITransport(app=world.app))
    given = {"name": "refund", "client": client, "key": "refund-{order}", "wait_s": 0, "quiet": True, **options}
    gated: Any = gate(**given)(function)
    return gated  # type: ignore[no-any-return]


async def ask(world: World, gated: Refund) -> Any:
    """Call the function, and return the suspension that waits for a decision."""
    with pytest.raises(Suspended) as suspended:
        await gated("A-1", 5.0)
    return await read(world, suspended.value.suspension_id)


async def read(world: World, suspension_id: str) -> Any:
    async with world.client("anna") as anna:
        return (await anna.get(f"/api/v1/suspensions/{suspension_id}")).json()


async def decide(world: World, suspension: Any, action: str = "approve") -> int:
    async with world.client("anna") as anna:
        body = {"action": action, "digest": suspension["items"][0]["digest"]}
        return (await anna.post(f"/api/v1/suspensions/{suspension['id']}/items/i1/decision", json=body)).status_code


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("state", ["waiting", "approved", "ran"])
async def test_deploy_keeps_the_call_of_a_key(world: World, state: str, edit: str) -> None:
    function, options, changed = EDITS[edit]
    first = await ask(world, deploy(world))
    if state != "waiting":
        assert await decide(world, first) == 200
    if state == "ran":
        assert await deploy(world)("A-1", 5.0) == "paid 5"
        assert await deploy(world, function, **options)("A-1", 5.0) == "paid 5"
        assert RUNS == [{"order": "A-1", "amount": 5.0}]
        assert (await read(world, first["id"]))["following_id"] is None
        return
    second = await ask(world, deploy(world, function, **options))
    assert RUNS == [], "an approval counts only for the definition that was shown"
    before = await read(world, first["id"])
    assert (before["status"], before["following_id"]) == ("cancelled", second["id"])
    assert (second["previous_id"], second["run"]["id"]) == (first["id"], first["run"]["id"])
    assert f"changed definition ({changed})" in second["items"][0]["prompt"]["reason"]
    assert await decide(world, first) == 409
    assert await decide(world, second) == 200
    result = await deploy(world, function, **options)("A-1", 5.0)
    assert result.startswith("paid 5")
    assert len(RUNS) == 1
    assert await deploy(world, function, **options)("A-1", 5.0) == result
    assert await deploy(world)("A-1", 5.0) == result, "the earlier version gets the result, too"
    assert len(RUNS) == 1


async def test_trail_says_what_changed_and_links_both_items(world: World) -> None:
    first = await ask(world, deploy(world))
    second = await ask(world, deploy(world, write_docstring(), step=2))
    async with world.client("anna") as anna:
        trail = (await anna.get(f"/api/v1/runs/{first['run']['id']}/events")).json()["events"]
    kinds = [event["type"] for event in trail]
    asked = trail[kinds.index("asked_again")]["data"]
    assert (asked["suspension_id"], asked["item_id"], asked["following_id"]) == (first["id"], "i1", second["id"])
    assert "changed definition (description)" in asked["reason"]
    assert kinds.count("run_paused") == 2


async def test_call_that_a_rule_denied_stays_denied_after_a_deploy(world: World) -> None:
    for function in (refund, write_docstring()):
        with pytest.raises(Denied, match="Nobody refunds that much") as denied:
            await deploy(world, function, again=True)("A-1", 501.0)
        assert denied.value.decided_by == "rule"


@pytest.mark.parametrize("again", [False, True])
async def test_denied_call_stays_denied_after_a_deploy(world: World, again: bool) -> None:
    first = await ask(world, deploy(world))
    assert await decide(world, first, "deny") == 200
    with pytest.raises(Denied, match="denied by anna"):
        await deploy(world, write_docstring(), again=again)("A-1", 5.0)
    assert (await read(world, first["id"]))["following_id"] is None


async def test_cancelled_call_stays_cancelled_after_a_deploy(world: World) -> None:
    first = await ask(world, deploy(world))
    async with world.client("demo") as demo:
        assert (await demo.post(f"/api/v1/runs/{first['run']['id']}/cancel", json={})).is_success
    with pytest.raises(Denied, match="cancelled"):
        await deploy(world, write_docstring(), again=True)("A-1", 5.0)


@pytest.mark.parametrize("again", [False, True])
async def test_call_in_doubt_is_not_asked_anew(world: World, again: bool) -> None:
    first = await ask(world, deploy(world))
    await decide(world, first)
    async with world.client("demo") as demo:
        start = f"/api/v1/suspensions/{first['id']}/items/i1/redeem"
        assert (await demo.post(start, headers={"Idempotency-Key": "lost"})).is_success
    with pytest.raises(InDoubt, match="on_doubt='ask'"):
        await deploy(world, write_docstring(), idempotent=True, again=again)("A-1", 5.0)
    with pytest.raises(Suspended):
        await deploy(world, write_docstring(), on_doubt="ask")("A-1", 5.0)
    assert RUNS == []


async def test_call_that_failed_does_not_run_again(world: World) -> None:
    async def fail(order: str, amount: float) -> str:
        raise RuntimeError("the bank hung up")

    first = await ask(world, deploy(world, fail))
    await decide(world, first)
    with pytest.raises(RuntimeError):
        await deploy(world, fail)("A-1", 5.0)
    with pytest.raises(CallFailed, match=r"under the key 'refund-A-1' and failed") as failed:
        await deploy(world, write_docstring(), again=True)("A-1", 5.0)
    assert "new key" not in failed.value.message
    assert RUNS == []


@pytest.mark.parametrize("state", ["waiting", "ran"])
async def test_key_of_another_call_names_what_differs(world: World, state: str) -> None:
    first = await ask(world, deploy(world))
    if state == "ran":
        await decide(world, first)
        await deploy(world)("A-1", 5.0)
    with pytest.raises(IdempotencyConflict) as refused:
        await deploy(world)("A-1", 6.0)
    message = refused.value.message
    assert "The key 'refund-A-1' belongs to another refund call: args.amount differs." in message
    assert ("arguments for its result" in message) == (state == "ran")
    assert ("Make the key of all arguments" in message) == (state == "waiting")
    with pytest.raises(IdempotencyConflict, match=r"args\.currency differs"):
        await deploy(world, add_parameter())("A-1", 5.0, "USD")


async def test_advice_about_a_key_leads_to_the_call(world: World) -> None:
    first = await ask(world, deploy(world))
    with pytest.raises(IdempotencyConflict, match="Make the key of all arguments"):
        await deploy(world)("A-1", 6.0)
    other = deploy(world, key="refund-{order}-{amount}")
    with pytest.raises(Suspended):
        await other("A-1", 6.0)
    await decide(world, first)
    assert await deploy(world)("A-1", 5.0) == "paid 5"
    with pytest.raises(IdempotencyConflict, match="Call it with its own arguments"):
        await deploy(world)("A-1", 6.0)
    assert await deploy(world)("A-1", 5.0) == "paid 5"


async def test_removed_parameter_with_its_default_is_the_same_call(world: World) -> None:
    first = await ask(world, deploy(world, add_parameter()))
    second = await ask(world, deploy(world))
    assert second["previous_id"] == first["id"]


async def test_waiting_process_does_not_run_what_a_later_version_asked(world: World) -> None:
    waiting = asyncio.create_task(call(deploy(world, wait_s=None)))

    async def is_asked() -> bool:
        async with world.client("anna") as anna:
            return bool((await anna.get("/api/v1/suspensions")).json()["suspensions"])

    await until(is_asked)
    second = await ask(world, deploy(world, write_docstring()))
    with pytest.raises(Withdrawn, match="Call it again to ask with this one"):
        await waiting
    third = await ask(world, deploy(world))
    assert third["previous_id"] == second["id"]
    await decide(world, third)
    assert await deploy(world)("A-1", 5.0) == "paid 5"
    assert len(RUNS) == 1


async def call(gated: Refund) -> str:
    return await gated("A-1", 5.0)


async def test_two_processes_of_a_later_version_ask_once(world: World) -> None:
    await ask(world, deploy(world))
    later = [ask(world, deploy(world, write_docstring())) for _ in range(8)]
    assert len({suspension["id"] for suspension in await asyncio.gather(*later)}) == 1


async def test_call_that_nobody_decided_is_asked_again_in_a_linked_item(world: World) -> None:
    async def be_denied(**options: Any) -> Any:
        with pytest.raises(Denied, match="Nobody is here") as denied:
            await deploy(world, **options)("A-1", 7.0)
        return await read(world, str(denied.value.facts["suspension_id"]))

    first = (await be_denied())["id"]
    assert (await be_denied())["id"] == first
    for night in (1, 2):
        second = await be_denied(again=True)
        assert second["previous_id"] == first
        before = await read(world, str(first))
        assert (before["following_id"], before["items"][0]["outcome"]["verdict"]) == (second["id"], "denied")
        first = second["id"]
        async with world.client("anna") as anna:
            trail = (await anna.get(f"/api/v1/runs/{second['run']['id']}/events?limit=200")).json()
        assert [event["type"] for event in trail["events"]].count("asked_again") == night
        assert trail["fault"] is None
