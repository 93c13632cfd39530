"""A verifiable share of allowed and decided calls waits for a second look, which one other person takes once."""

import asyncio
from hmac import digest
from pathlib import Path
from typing import Any

import pytest

from sayso.core.records.events import TrailEntry
from sayso.core.transitions.second_look import Opinion
from sayso.errors import AlreadyDecided, NotFound
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.control.store import Recents, list_second_look
from service.features.insights.figures import read_rule_cost
from tests.builders import person
from tests.service.worlds import World
from workers.outbox import Counting

KEYS = TenantKeys(TENANT)
POLICY = """
version: 1
default: deny
rules:
  - {id: large, priority: 200, tool: refund, when: args.amount > 100, action: defer, terms: {sample: {after: 0.5}}}
  - {id: small, tool: refund, action: allow, terms: {secrets: [order], sample: {after: 0.5}}}
  - {id: free, tool: look, action: allow}
"""
AGREES = Opinion(agrees=True)


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy)


async def suspend(world: World, amount: int, tool: str = "refund") -> dict[str, Any]:
    async with world.client("demo") as demo:
        call = {"tool": tool, "args": {"order": "A-1", "amount": amount}, "definition": {}}
        found = await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})
        return dict(found.json())


async def approve(world: World, suspension: dict[str, Any]) -> None:
    async with world.client("anna") as anna:
        body = {"action": "approve", "digest": suspension["items"][0]["digest"]}
        assert (await anna.post(f"/api/v1/suspensions/{suspension['id']}/items/i1/decision", json=body)).is_success


async def draw_one(world: World, amount: int) -> tuple[str, int]:
    """Suspend for calls until one is drawn; return its run and the number of its event."""
    while True:
        suspension = await suspend(world, amount)
        if amount > 100:
            await approve(world, suspension)
        await Counting(world.wiring).count_waiting()
        waiting = await world.wiring.part(Recents).second_look.list_waiting(1)
        if waiting:
            return waiting[0].run_id, waiting[0].seq


async def trail_of(wiring: Wiring, run_id: str) -> list[TrailEntry]:
    return await wiring.runs.trail(run_id)


async def test_waiting_calls_are_those_of_the_stored_secret(world: World) -> None:
    runs = [(await suspend(world, amount))["run"]["id"] for amount in [5] * 20]
    for amount in [500] * 20:
        suspension = await suspend(world, amount)
        await approve(world, suspension)
        runs.append(suspension["run"]["id"])
    await suspend(world, 500)  # open
    await suspend(world, 5, "look")  # of a rule without a sample
    await Counting(world.wiring).count_waiting()
    secret = await world.wiring.part(Recents).second_look._redis.get(KEYS.sampling)
    assert isinstance(secret, bytes)
    expected = set()
    for run in runs:
        for entry in await trail_of(world.wiring, run):
            if "second_look" in entry.data:
                drawn = digest(secret, f"{TENANT} {run} {entry.seq}".encode(), "sha256")
                if int.from_bytes(drawn[:8]) < 0.5 * 2**64:
                    expected.add((run, entry.seq))
    found = await world.wiring.part(Recents).second_look.list_waiting(100)
    assert {(one.run_id, one.seq) for one in found} == expected
    kinds = [(await trail_of(world.wiring, one.run_id))[one.seq - 1].type for one in found]
    assert set(kinds) == {"policy_decision", "decision_recorded"}
    assert 0 < len(found) < 40


async def test_person_takes_a_second_look_once(world: World) -> None:
    wiring = world.wiring
    run_id, seq = await draw_one(world, 500)
    with pytest.raises(AlreadyDecided, match="You decided this call"):
        await wiring.desk.take_second_look(run_id, seq, AGREES, person("anna"), wiring.part(Recents).second_look.waits)
    wrong = Opinion(agrees=False, reason="The order was paid back before.")
    for _ in range(2):  # the same again changes nothing
        await wiring.desk.take_second_look(run_id, seq, wrong, person("ben"), wiring.part(Recents).second_look.waits)
    taken = [entry.data for entry in await trail_of(wiring, run_id) if entry.type == "second_look_taken"]
    assert [(one["seen"], one["agrees"], one["by"]["id"]) for one in taken] == [(seq, False, "ben")]
    assert not await wiring.part(Recents).second_look.waits(run_id, seq)
    with pytest.raises(AlreadyDecided, match="Somebody else"):
        await wiring.desk.take_second_look(run_id, seq, AGREES, person("root"), wiring.part(Recents).second_look.waits)
    await Counting(wiring).count_waiting()
    cost = await read_rule_cost(wiring, "large")
    assert cost is not None
    assert (cost.second_opinions, cost.disagreed, cost.near_misses) == (1, 1, 1)


async def test_two_people_at_once_leave_one_opinion(world: World) -> None:
    wiring = world.wiring
    run_id, seq = await draw_one(world, 5)
    people = [person(name) for name in ("anna", "ben", "root", "dora")]
    takes = (
        wiring.desk.take_second_look(run_id, seq, AGREES, one, wiring.part(Recents).second_look.waits) for one in people
    )
    ended = await asyncio.gather(*takes, return_exceptions=True)
    assert sum(isinstance(one, AlreadyDecided) for one in ended) == 3
    assert [entry.type for entry in await trail_of(wiring, run_id)].count("second_look_taken") == 1


async def test_call_that_was_not_drawn_cannot_be_judged(world: World) -> None:
    run_id = (await suspend(world, 5, "look"))["run"]["id"]
    for seq in (2, 99):
        with pytest.raises(NotFound):
            await world.wiring.desk.take_second_look(
                run_id, seq, AGREES, person("ben"), world.wiring.part(Recents).second_look.waits
            )


async def test_allowed_call_shows_its_arguments_without_secrets(world: World) -> None:
    await draw_one(world, 5)
    (found,) = await list_second_look(world.wiring, person("anna"))
    assert (found.call.seen.verdict, found.call.seen.rule_id, found.refusal) == ("allowed", "small", "")
    assert found.call.args["amount"] == 5
    assert found.call.args["order"] != "A-1"


async def test_call_of_a_deleted_run_waits_no_longer(world: World) -> None:
    run_id, _ = await draw_one(world, 5)
    await world.wiring.part(Recents).second_look._redis.delete(KEYS.trail(run_id))
    assert await list_second_look(world.wiring, person("ben")) == []
    assert await world.wiring.part(Recents).second_look.count() == 0


async def test_second_look_over_the_api(world: World) -> None:
    run_id, seq = await draw_one(world, 500)
    async with world.client("anna") as anna, world.client("root") as root, world.client("demo") as demo:
        (mine,) = (await anna.get("/api/v1/second-looks")).json()["calls"]
        assert (mine["may_take"], mine["decided_by"], mine["verdict"]) == (False, ["anna"], "approved")
        listed = (await root.get("/api/v1/second-looks")).json()
        assert (listed["total"], listed["calls"][0]["may_take"]) == (1, True)
        place = f"/api/v1/second-looks/{run_id}/{seq}"
        assert (await demo.post(place, json={"opinion": "agree"})).status_code == 403
        assert (await root.post(place, json={"opinion": "disagree"})).status_code == 422
        assert (await root.post(place, json={"opinion": "agree"})).json()["tool"] == "refund"
        assert (await root.get("/api/v1/second-looks")).json() == {"calls": [], "total": 0}
