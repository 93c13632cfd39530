"""Requirements for conforming providers, one test per entry of the protocol's list."""

import asyncio
from datetime import datetime

import pytest
from httpx import Response
from redis.asyncio import Redis

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import Status
from sayso.errors import SaysoError
from service.core.settings import Settings
from tests.builders import approve, person
from tests.receivers import Receiver
from tests.service.edge.api.aap.clients import (
    InstanceClient,
    connected,
    find,
    make_instance,
    make_late,
    make_provisioner,
    make_stale,
)
from tests.service.worlds import World
from workers.delivery import Courier


async def decide(
    world: World, request_id: str, action: str = "approve", by: str = "anna", message: str | None = None
) -> None:
    """Decide the pending request as a reviewer."""
    record = await find(world.wiring, request_id)
    decision = DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest})
    await world.wiring.desk.decide(record.id, "i1", decision, person(by))


@pytest.mark.parametrize("round_", range(10))
async def test_racing_decision_cancel_and_expiry_have_one_outcome(
    world: World, bot: InstanceClient, round_: int
) -> None:
    request_id = await bot.waiting()
    record = await find(world.wiring, request_id)
    if round_ % 2:
        await make_late(world.wiring, request_id)
    racers = [
        decide(world, request_id, "approve", "anna"),
        decide(world, request_id, "deny", "root"),
        bot.client.delete(f"/requests/{request_id}"),
        world.wiring.desk.tick(record.id),
    ]
    done = await asyncio.gather(*racers, return_exceptions=True)
    assert all(not isinstance(one, BaseException) or isinstance(one, SaysoError) for one in done)

    shown = await bot.show(request_id)
    assert shown["status"] in (("expired",) if round_ % 2 else ("approved", "denied", "cancelled"))
    for _ in range(2):
        await asyncio.gather(decide(world, request_id), return_exceptions=True)
        await bot.client.delete(f"/requests/{request_id}")
        assert await bot.show(request_id) == shown
    cancelled = done[2]
    assert isinstance(cancelled, Response)
    assert (cancelled.status_code == 200) == (shown["status"] == "cancelled")


async def test_request_expires_at_its_deadline(world: World, bot: InstanceClient) -> None:
    request_id = await bot.waiting(tool="unattended")
    await make_late(world.wiring, request_id)
    with pytest.raises(SaysoError):
        await decide(world, request_id)
    shown = await bot.show(request_id)
    assert shown["status"] == shown["decision"]["status"] == "expired"
    assert "expires_at" not in shown["decision"]
    assert (await bot.consume(request_id)).json()["error"]["code"] == "not_approved"


async def test_deadline_is_the_shorter_of_request_and_rule(bot: InstanceClient) -> None:
    for tool, timeout, seconds in (
        ("refund", "10m", 600),
        ("hurry", "10m", 60),
        ("hurry", "5s", 5),
        ("a", "9999999h", 2592000),
    ):
        shown = (await bot.ask(tool, timeout=timeout)).json()
        created, deadline = (_moment(shown[name]) for name in ("created_at", "deadline_at"))
        assert deadline - created == seconds
        assert shown["timeout"] == timeout


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def test_repeated_key_returns_the_lost_reply(world: World, bot: InstanceClient, provisioner: str) -> None:
    first, second, *more = await asyncio.gather(*(bot.ask(key="one", args={"a": 1.0}) for _ in range(6)))
    assert sorted(answer.status_code for answer in (first, second, *more)) == [200] * 5 + [201]
    assert len({answer.text for answer in (first, second, *more)}) == 1
    request_id = first.json()["id"]
    await approve(world.wiring, await find(world.wiring, request_id))
    assert (await bot.ask(key="one", args={"a": 1.0})).json()["status"] == "approved"
    assert (await bot.ask(key="one", args={"a": 1})).json()["error"]["code"] == "idempotency_conflict"

    answers = await asyncio.gather(*(bot.consume(request_id, "same") for _ in range(4)))
    assert {(answer.status_code, answer.text) for answer in answers} == {(200, answers[0].text)}
    assert (await bot.consume(request_id, "other")).json()["error"]["code"] == "already_consumed"

    for _ in range(2):
        answer = await bot.client.post(f"/requests/{request_id}/outcome", json={"status": "failed", "note": "no funds"})
        assert answer.json()["consumption"]["outcome"] | {"reported_at": ""} == {
            "status": "failed",
            "note": "no funds",
            "reported_at": "",
        }
    assert (await bot.consume(request_id, "same")).status_code == 200


async def test_repeated_creation_makes_one_instance(world: World, provisioner: str) -> None:
    async with connected(world, provisioner) as client:
        body = {"instance_name": "shop"}
        answers = await asyncio.gather(
            *(client.post("/instances", json=body, headers={"Idempotency-Key": "k"}) for _ in range(5))
        )
        assert sorted(answer.status_code for answer in answers) == [200] * 4 + [201]
        assert len({answer.text for answer in answers}) == 1
        other = await client.post("/instances", json={"instance_name": "bank"}, headers={"Idempotency-Key": "k"})
        assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    async with connected(world, answers[0].json()["credential"]["token"]) as client:
        assert (
            await client.post(
                "/requests",
                json={"tool": "look_up", "arguments": {}, "timeout": "1m"},
                headers={"Idempotency-Key": "k"},
            )
        ).status_code == 201


async def test_unknown_and_foreign_ids_are_answered_alike(world: World, bot: InstanceClient, provisioner: str) -> None:
    request_id = await bot.waiting()
    unknown = request_id[:-4] + ("0000" if request_id[-4:] != "0000" else "1111")
    async with make_instance(world, provisioner) as other:
        for method, place in (("GET", ""), ("DELETE", ""), ("POST", "/consume"), ("POST", "/outcome")):
            body = {"status": "failed"} if place == "/outcome" else None
            messages = set()
            for one in (request_id, unknown, "nonsense"):
                answer = await other.client.request(
                    method, f"/requests/{one}{place}", headers={"Idempotency-Key": "k"}, json=body
                )
                assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
                messages.add(answer.json()["error"]["message"].replace(one, ""))
            assert len(messages) <= 2
    assert (await bot.show(request_id))["status"] == "pending"


async def test_idempotency_keys_belong_to_one_instance(world: World, bot: InstanceClient, provisioner: str) -> None:
    async with make_instance(world, provisioner) as other:
        mine, yours = await bot.ask(key="same"), await other.ask(key="same")
    assert (mine.status_code, yours.status_code) == (201, 201)
    assert mine.json()["id"] != yours.json()["id"]


async def test_instance_of_another_provisioner_is_not_found(world: World, bot: InstanceClient) -> None:
    stranger = await make_provisioner(world.wiring, "stranger")
    async with connected(world, stranger) as client:
        for answer in (
            await client.get(f"/instances/{bot.id}"),
            await client.patch(f"/instances/{bot.id}", json={}, headers={"Idempotency-Key": "k"}),
            await client.delete(f"/instances/{bot.id}"),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert (await bot.ask()).status_code == 201


async def test_provisioners_cannot_ask_and_instances_cannot_manage(
    world: World, bot: InstanceClient, provisioner: str
) -> None:
    async with connected(world, provisioner) as client:
        answer = await client.post("/requests", json={}, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "authorization")
    answer = await bot.client.post("/instances", json={}, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "authorization")
    for token in (world.tokens["demo"], world.tokens["anna"], "nothing"):
        async with connected(world, token) as client:
            assert (await client.post("/requests", json={}, headers={"Idempotency-Key": "k"})).status_code == 401
            assert (await client.post("/instances", json={}, headers={"Idempotency-Key": "k"})).status_code == 401
    for token in (bot.token, provisioner):
        async with world.client() as client:
            headers = {"Authorization": f"Bearer {token}"}
            assert (await client.get("/api/v1/runs", headers=headers)).status_code == 401


async def test_approval_expiry_never_moves(world: World, bot: InstanceClient) -> None:
    request_id = await bot.waiting(tool="hurry")
    before = await bot.show(request_id)
    freeze = await world.wiring.freezes.freeze("tool:hurry", "", person("root"))
    await decide(world, request_id)
    shown = await bot.show(request_id)
    assert shown["deadline_at"] == before["deadline_at"]
    assert _moment(shown["decision"]["expires_at"]) - _moment(shown["decision"]["decided_at"]) == 5
    frozen = await bot.consume(request_id)
    assert (frozen.status_code, frozen.json()["error"]["code"]) == (409, "frozen")
    await world.wiring.freezes.unfreeze(freeze.id, person("root"))
    await world.wiring.desk.wake((await find(world.wiring, request_id)).id, freeze)
    assert (await bot.show(request_id))["decision"] == shown["decision"]

    await make_stale(world.wiring, request_id)
    for _ in range(2):
        late = await bot.consume(request_id)
        assert (late.status_code, late.json()["error"]["code"]) == (409, "approval_expired")
        await world.wiring.desk.tick((await find(world.wiring, request_id)).id)
    assert (await bot.show(request_id))["status"] == "approved"


async def test_deletion_removes_requests_credential_and_delivery(
    world: World, provisioner: str, receiver: Receiver, settings: Settings
) -> None:
    async with make_instance(world, provisioner, delivery=receiver.delivery()) as instance:
        first, second = await instance.waiting(), await instance.waiting()
        await decide(world, first)
        deleting = connected(world, provisioner)
        async with deleting as client:
            asking = [instance.ask() for _ in range(10)]
            deleted, *_ = await asyncio.gather(client.delete(f"/instances/{instance.id}"), *asking)
            assert deleted.status_code == 204
            assert (await client.delete(f"/instances/{instance.id}")).status_code == 204
            assert (await client.get(f"/instances/{instance.id}")).status_code == 404
        assert (await instance.client.get(f"/requests/{second}")).status_code == 401
        assert (await instance.ask()).status_code == 401

    assert await world.wiring.runs.waiting_of(f"aap:{instance.id}") == []
    assert (await find(world.wiring, second)).status is Status.CANCELLED
    courier = Courier(world.wiring)
    while await courier.deliver_due():
        await courier.finish()
    assert receiver.events() == []
    async with Redis.from_url(settings.store_url) as store:
        assert await store.zcard("sayso:{default}:deliveries") == 0
        assert [name async for name in store.scan_iter("sayso:aap-keys:*")] == []
