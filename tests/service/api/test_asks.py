"""Calls of a run that is driven elsewhere, brought over HTTP: judged, put before people, decided."""

from typing import Any

import pytest
from httpx import Response

from service.credentials import TENANT
from tests.service.worlds import World, read_store

REFUND = {"tool": "refund", "args": {"order": "A-1", "amount": 250.5}, "call_id": "c1"}


async def ask(world: World, *calls: dict[str, Any], key: str | None = None, **fields: Any) -> Response:
    async with world.client("demo") as client:
        return await client.post(
            "/api/v1/suspensions",
            json={"agent": "demo", "calls": list(calls), **fields},
            headers={"Idempotency-Key": key} if key else {},
        )


async def test_a_call_that_must_wait_is_put_before_people(world: World) -> None:
    answer = await ask(world, REFUND, title="Pay back")
    assert answer.status_code == 201
    asked = answer.json()
    assert answer.headers["Location"] == f"/api/v1/suspensions/{asked['id']}"
    (item,) = asked["items"]
    assert (asked["status"], item["tool"]["args"], item["call_id"]) == ("pending", REFUND["args"], "c1")
    async with world.client("anna") as reviewer:
        waiting = (await reviewer.get("/api/v1/suspensions")).json()["suspensions"]
    assert [one["id"] for one in waiting] == [asked["id"]]


async def test_what_the_rules_deny_is_decided_at_once_and_nobody_is_asked(world: World) -> None:
    asked = (await ask(world, {"tool": "refund", "args": {"order": "A-1", "amount": 600}})).json()
    assert asked["status"] == "decided"
    outcome = asked["items"][0]["outcome"]
    assert (outcome["verdict"], outcome["by"]["kind"]) == ("denied", "policy")
    trail = await world.wiring.runs.trail(TENANT, asked["run"]["id"])
    assert [one.type for one in trail] == ["tool_batch_started", "policy_decision", "run_paused", "decided"]
    started, judged, *_ = (one.data for one in trail)
    assert (started["agent"], started["owner"]) == (asked["run"]["agent"], asked["run"]["owner"])
    assert judged["args"] == {"order": "A-1", "amount": 600}
    assert judged["rule_version"] == asked["items"][0]["terms"]["rule_version"]


async def test_denied_calls_do_not_hold_up_the_asking_of_others(world: World) -> None:
    asked = (await ask(world, {"tool": "refund", "args": {"order": "A-1", "amount": 600}}, REFUND)).json()
    assert asked["status"] == "pending"
    assert [item["outcome"] is None for item in asked["items"]] == [False, True]


async def test_the_same_request_under_its_key_asks_once(world: World) -> None:
    first, again = await ask(world, REFUND, key="k1"), await ask(world, REFUND, key="k1")
    assert first.json()["id"] == again.json()["id"]
    assert (await ask(world, REFUND, REFUND, key="k1")).status_code == 409


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"tool": "transfer", "args": {}}, "has no tool 'transfer'"),
        ({"tool": "refund", "args": {"order": "A-1"}}, "required property"),
        ({"tool": "refund", "args": {"order": 1, "amount": 2}}, "calls[0].args.order"),
        ({"tool": "refund", "args": {"order": "A-1", "amount": 2, "more": 3}}, "more"),
        ({"args": {}}, "$.calls[0].tool is missing"),
    ],
)
async def test_a_call_that_could_not_run_is_refused_before_anybody_is_asked(
    world: World, clean_store_url: str, call: dict[str, Any], said: str
) -> None:
    before = await read_store(clean_store_url)
    answer = await ask(world, call)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert await read_store(clean_store_url) == before
