"""Runs over HTTP: started once per key, read, awaited and cancelled."""

import asyncio

import pytest
from redis.asyncio import Redis

from sayso.core.records.suspensions import RunStatus
from sayso.runner.transcripts import RunState
from service.core.store.runs.runs import Run
from tests.builders import approve, finish, give_up, make_pending, make_running
from tests.service.edge.web.stories import make_ask, pause
from tests.service.worlds import World, waiting

START = {"agent": "demo", "input": "Refund order A-1, please.", "context": {"plan": "gold"}, "tags": ["refunds"]}


async def test_start_run_saves_the_request_and_enqueues_it(world: World) -> None:
    async with world.client("demo") as client:
        answer = await client.post("/api/v1/runs", json={**START, "title": "Refund", "thread_id": "t-1"})
    run = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert (run["agent"], run["owner"], run["thread_id"], run["claimed_title"]) == ("demo", "demo", "t-1", "Refund")
    assert (run["tags"], run["status"], run["result"], run["error"]) == (["refunds"], "running", None, None)
    assert [one.id for one in await world.wiring.schedule.take(1)] == [run["suspension_id"]]
    record = (await world.wiring.desk.suspensions.read(run["suspension_id"])).record
    assert record is not None
    assert record.state is not None
    assert (record.run.facts, record.run.claimed) == ({}, {"plan": "gold"})
    state = RunState.model_validate_json(await world.wiring.runs.state(run["id"], record.state))
    assert state.messages == ({"role": "user", "content": START["input"]},)
    assert state.claimed == {"plan": "gold"}


async def test_title_defaults_to_the_start_of_the_input(world: World) -> None:
    async with world.client("demo") as client:
        run = (await client.post("/api/v1/runs", json={"agent": "demo", "input": "Refund\n order " + "9" * 90})).json()
    assert run["claimed_title"] == "Refund order " + "9" * 66 + "…"
    assert run["thread_id"] == run["id"]


async def test_unregistered_agent_is_refused_with_registered_names(world: World) -> None:
    async with world.client("demo") as client:
        answer = await client.post("/api/v1/runs", json={**START, "agent": "demon"})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "There is no agent named 'demon'. Registered are: demo."
    assert answer.json()["errors"] == [{"path": "$.agent", "message": "is not registered"}]


async def test_repeated_start_returns_the_same_run(world: World) -> None:
    key = {"Idempotency-Key": "order-A-1"}
    async with world.client("demo") as client:
        first, second = await asyncio.gather(*(client.post("/api/v1/runs", json=START, headers=key) for _ in range(2)))
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json()["id"] == second.json()["id"]
        record = (await world.wiring.desk.suspensions.read(first.json()["suspension_id"])).record
        assert record is not None
        await finish(world.wiring, record, result={"text": "done"})
        third = await client.post("/api/v1/runs", json=dict(reversed(START.items())), headers=key)
        assert (await client.get("/api/v1/runs")).json()["runs"] == [third.json()]
    assert third.json()["status"] == "completed"
    assert third.json()["result"] == {"text": "done"}


@pytest.mark.parametrize(
    "changed", [{"input": "Refund order A-2"}, {"title": "x"}, {"context": {}}, {"tags": []}, {"thread_id": "t"}]
)
async def test_different_request_with_the_same_key_is_refused(world: World, changed: dict[str, object]) -> None:
    key = {"Idempotency-Key": "order-A-1"}
    async with world.client("demo") as client:
        await client.post("/api/v1/runs", json=START, headers=key)
        answer = await client.post("/api/v1/runs", json={**START, **changed}, headers=key)
        runs = (await client.get("/api/v1/runs")).json()["runs"]
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/idempotency-conflict")
    assert len(runs) == 1


async def test_idempotency_keys_belong_to_the_caller(world: World) -> None:
    key = {"Idempotency-Key": "mine"}
    async with world.client("demo") as demo, world.client("other") as other:
        first = (await demo.post("/api/v1/runs", json=START, headers=key)).json()
        second = (await other.post("/api/v1/runs", json=START, headers=key)).json()
    assert (first["owner"], second["owner"]) == ("demo", "other")
    assert first["id"] != second["id"]


async def test_list_runs_is_newest_first_by_page_and_status(world: World) -> None:
    ended = [await finish(world.wiring, await make_running(world.wiring)) for _ in range(3)]
    pending = await make_pending(world.wiring)
    async with world.client("demo") as client:
        first = (await client.get("/api/v1/runs?limit=3")).json()
        rest = (await client.get(f"/api/v1/runs?limit=3&skip={first['next_skip']}")).json()
        completed = (await client.get("/api/v1/runs?status=completed&limit=2&skip=1")).json()
        suspended = (await client.get("/api/v1/runs?status=suspended")).json()
    shown = [run["id"] for run in first["runs"] + rest["runs"]]
    assert sorted(shown) == sorted(record.run.id for record in [*ended, pending])
    assert (first["next_skip"], rest["next_skip"], completed["next_skip"]) == (3, None, None)
    assert len(completed["runs"]) == 2
    assert [run["id"] for run in suspended["runs"]] == [pending.run.id]


async def test_agent_reads_its_own_runs_and_people_all(world: World) -> None:
    own = await make_running(world.wiring, owner="demo")
    foreign = await make_running(world.wiring, owner="other")
    async with world.client("demo") as demo, world.client("anna") as anna:
        assert [run["id"] for run in (await demo.get("/api/v1/runs")).json()["runs"]] == [own.run.id]
        assert len((await anna.get("/api/v1/runs")).json()["runs"]) == 2
        denied = await demo.get(f"/api/v1/runs/{foreign.run.id}")
        unknown = await demo.get(f"/api/v1/runs/{foreign.run.id[:-1]}x")
        assert (await anna.get(f"/api/v1/runs/{foreign.run.id}")).status_code == 200
    assert (denied.status_code, unknown.status_code) == (404, 404)
    assert denied.json()["detail"].replace(foreign.run.id, "") == unknown.json()["detail"].replace(
        f"{foreign.run.id[:-1]}x", ""
    )


async def test_long_poll_returns_when_the_run_ends(world: World) -> None:
    record = await approve(world.wiring, await make_pending(world.wiring))
    async with world.client("demo") as client:
        poll = asyncio.create_task(client.get(f"/api/v1/runs/{record.run.id}?wait=60s"))
        await waiting(world, record.run.id)
        await finish(world.wiring, record, RunStatus.DEGRADED, result={"text": "partly"})
        run = (await asyncio.wait_for(poll, 10)).json()
    assert (run["status"], run["result"]) == ("degraded", {"text": "partly"})


async def test_long_poll_returns_the_current_run_after_its_time(world: World) -> None:
    record = await make_pending(world.wiring)
    async with world.client("demo") as client:
        now = await client.get(f"/api/v1/runs/{record.run.id}")
        soon = await client.get(f"/api/v1/runs/{record.run.id}?wait=1")
    assert now.json() == soon.json()
    assert now.json()["status"] == "suspended"


async def test_cancel_run_is_idempotent(world: World) -> None:
    record = await make_pending(world.wiring)
    path = f"/api/v1/runs/{record.run.id}/cancel"
    async with world.client("demo") as client:
        first = await client.post(path, json={"reason": "wrong order"}, headers={"Idempotency-Key": "stop"})
        again = await client.post(path, json={"reason": "wrong order"}, headers={"Idempotency-Key": "stop"})
        bare = await client.post(path)
        changed = await client.post(path, json={"reason": "other"}, headers={"Idempotency-Key": "stop"})
        events = (await client.get(f"/api/v1/runs/{record.run.id}/events")).json()["events"]
    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert first.json()["error"] == "Cancelled by demo: wrong order"
    assert first.json() == again.json() == bare.json()
    assert (changed.status_code, changed.json()["type"]) == (409, "/problems/idempotency-conflict")
    assert [event["type"] for event in events] == ["run_paused", "run_cancelled"]


async def test_ended_run_cannot_be_cancelled(world: World) -> None:
    record = await finish(world.wiring, await make_running(world.wiring))
    async with world.client("demo") as client:
        answer = await client.post(f"/api/v1/runs/{record.run.id}/cancel")
    assert answer.status_code == 409
    assert answer.json()["current_status"] == "completed"
    assert answer.json()["status"] == 409


async def test_foreign_run_cannot_be_cancelled(world: World) -> None:
    record = await make_pending(world.wiring, owner="other")
    async with world.client("demo") as client:
        assert (await client.post(f"/api/v1/runs/{record.run.id}/cancel")).status_code == 404
    assert (await world.wiring.runs.read(record.run.id)).status == "suspended"


async def test_revive_run_is_idempotent(world: World) -> None:
    failed = await give_up(world.wiring, await approve(world.wiring, await make_pending(world.wiring)))
    path = f"/api/v1/runs/{failed.run.id}/revive"
    async with world.client("anna") as client:
        answers = [await client.post(path, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
        refused = await client.post(path)
    assert [answer.json()["status"] for answer in answers] == ["suspended", "suspended"]
    assert refused.status_code == 409, "there is nothing to revive any more"


async def test_decided_run_is_listed_as_suspended_until_it_resumes(world: World) -> None:
    waits = await make_pending(world.wiring)
    decided = await approve(world.wiring, await make_pending(world.wiring))
    await make_running(world.wiring)
    async with world.client("anna") as client:
        found = (await client.get("/api/v1/runs?status=suspended")).json()["runs"]
        first = (await client.get("/api/v1/runs?status=suspended&limit=1")).json()
        second = (await client.get("/api/v1/runs?status=suspended&limit=1&skip=1")).json()
    assert [(one["id"], one["status"]) for one in found] == [(one.run.id, "suspended") for one in (waits, decided)]
    assert [one["runs"][0]["id"] for one in (first, second)] == [one["id"] for one in found]
    assert (first["next_skip"], second["next_skip"]) == (1, None)


async def test_suspended_run_in_two_indexes_is_read_once(world: World, clean_store_url: str) -> None:
    waits = await make_pending(world.wiring)
    async with Redis.from_url(clean_store_url) as redis:
        await redis.config_resetstat()
        found = await world.wiring.runs.list_runs(status="suspended")
        reads = await redis.info("commandstats")
    assert [one.id for one in found if isinstance(one, Run)] == [waits.run.id]
    assert len(found) == 1
    assert reads["cmdstat_mget"]["calls"] == 1


async def test_times_are_written_with_milliseconds_in_utc(world: World) -> None:
    record = await make_running(world.wiring)
    async with world.client("demo") as client:
        run = (await client.get(f"/api/v1/runs/{record.run.id}")).json()
    assert len(run["created_at"]) == len("2026-11-21T12:03:04.120Z")
    assert run["created_at"].endswith("Z")


async def test_registered_agents_are_listed_with_their_tools(world: World) -> None:
    async with world.client("demo") as client:
        agents = (await client.get("/api/v1/agents")).json()["agents"]
    assert [(agent["name"], [tool["name"] for tool in agent["tools"]]) for agent in agents] == [("demo", ["refund"])]


async def test_suspensions_of_a_run_are_chained_from_its_start(world: World) -> None:
    first = await make_pending(world.wiring)
    await pause(world.wiring, await approve(world.wiring, first), [make_ask()])
    async with world.client("demo") as client:
        chain = (await client.get(f"/api/v1/runs/{first.run.id}/suspensions")).json()
        run = (await client.get(f"/api/v1/runs/{first.run.id}")).json()
    ids = [one["id"] for one in chain["suspensions"]]
    assert ids == [first.id, run["suspension_id"]]
    assert [one["previous_id"] for one in chain["suspensions"]] == [None, first.id]
    assert [one["following_id"] for one in chain["suspensions"]] == [run["suspension_id"], None]
    assert chain["cut"] is False
