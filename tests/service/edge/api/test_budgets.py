"""No text of a call stops the service: what cannot be computed within a budget is asked about."""

import asyncio
from typing import Any

import pytest
from httpx import Response

from benchmarks.holds.corpus import LOOPS, MAIL, RULES
from tests.service.worlds import World


async def suspend(world: World, tool: str, *args: Any) -> Response:
    world.wiring.settings.policy.write_text(RULES)
    calls = [{"tool": tool, "args": one, "definition": {}} for one in args]
    async with world.client("demo") as client:
        return await client.post("/api/v1/suspensions", json={"mode": "poll", "calls": calls}, timeout=60)


async def judge(world: World, tool: str, *args: Any) -> list[tuple[str, str]]:
    """Return for each call its outcome, and the error of its evaluation."""
    answer = await suspend(world, tool, *args)
    assert answer.status_code == 201, answer.text
    found = answer.json()
    async with world.client("demo") as client:
        trail = (await client.get(f"/api/v1/runs/{found['run']['id']}/events")).json()
    errors = [one["data"].get("error", "") for one in trail["events"] if one["type"] == "policy_decision"]
    outcomes = [(one["outcome"] or {"verdict": "asked"})["verdict"] for one in found["items"]]
    return [*zip(outcomes, errors, strict=True)]


async def test_the_service_answers_while_a_hostile_condition_is_judged(world: World) -> None:
    hostile = asyncio.create_task(suspend(world, "t_loop", LOOPS["numbers"]))
    async with world.client() as client:
        for _ in range(3):
            assert (await client.get("/healthz")).status_code == 200
    assert not hostile.done()
    assert (await hostile).status_code == 201


async def test_condition_beyond_its_limit_of_time_is_asked_about(world: World) -> None:
    ((outcome, error),) = await judge(world, "t_loop", LOOPS["numbers"])
    assert outcome == "asked"
    assert "rule text: it cannot be computed: The evaluation took longer than " in error


async def test_two_dozen_calls_with_quotes_are_asked_about(world: World) -> None:
    found = await judge(world, "t_mail", *[{"v": MAIL["quotes"]}] * 24)
    assert len(found) == 24
    assert all(outcome == "asked" and error for outcome, error in found)


@pytest.mark.parametrize("query", ["select a, b from orders where id = 5", "select " + "a, " * 300 + "b from orders"])
async def test_sql_of_any_ordinary_length_runs_as_the_rule_says(world: World, query: str) -> None:
    assert await judge(world, "t_sql", {"v": query}) == [("approved", "")]


async def test_an_approved_call_of_much_work_starts(world: World) -> None:
    """Its condition is judged again before it starts, within the commit that redeems its permit."""
    found = (await suspend(world, "t_sql", {"v": "select " + "a, " * 300 + "b from orders"})).json()
    world.wiring.settings.policy.write_text(f"{RULES}# changed, so that every rule is tried again\n")
    async with world.client("demo") as client:
        path = f"/api/v1/suspensions/{found['id']}/items/{found['items'][0]['item_id']}/redeem"
        redeemed = await client.post(path, headers={"Idempotency-Key": "key-1"})
    assert redeemed.status_code == 200, redeemed.text
