"""Trail events over HTTP: in pages, and as a stream that continues after `Last-Event-ID`."""

import asyncio
import json

from httpx import AsyncClient

from sayso.core.clock import iso_utc
from sayso.core.records.suspensions import RunStatus
from tests.builders import approve, finish, make_pending, make_running
from tests.service.worlds import World, waiting

STORY = ["run_paused", "decision_recorded", "decided", "run_resuming", "run_resumed", "run_completed"]


def read_stream(text: str) -> list[tuple[str, str, dict[str, object]]]:
    """The (id, event, data) of each message."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


async def told_run(world: World) -> str:
    record = await approve(world.wiring, await make_pending(world.wiring))
    return (await finish(world.wiring, record)).run.id


async def test_events_are_listed_unchanged_in_pages(world: World) -> None:
    run_id = await told_run(world)
    async with world.client("demo") as client:
        first = (await client.get(f"/api/v1/runs/{run_id}/events?limit=4")).json()
        rest = (await client.get(f"/api/v1/runs/{run_id}/events?after={first['next_after']}")).json()
        none = (await client.get(f"/api/v1/runs/{run_id}/events?after={rest['next_after']}")).json()
    events = first["events"] + rest["events"]
    trail = await world.wiring.runs.trail(run_id)
    assert events == [
        {
            "seq": one.seq,
            "at": iso_utc(one.at_ms),
            "type": one.type,
            "data": one.data,
            "hash": one.hash,
            "erased_by": None,
        }
        for one in trail
    ]
    assert [event["type"] for event in events] == STORY
    head = {"seq": len(STORY), "hash": trail[-1].hash}
    assert none == {"events": [], "next_after": len(STORY), "head": head, "partial": True, "fault": None}


async def test_stream_sends_all_events_and_ends(world: World) -> None:
    run_id = await told_run(world)
    async with world.client("demo") as client:
        answer = await client.get(f"/api/v1/runs/{run_id}/events/stream")
    messages = read_stream(answer.text)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [(id_, event) for id_, event, _ in messages] == [
        *((str(seq), kind) for seq, kind in enumerate(STORY, start=1)),
        ("", "end"),
    ]
    assert messages[0][2]["data"] == (await world.wiring.runs.trail(run_id))[0].data
    assert messages[-1][2] == {"status": "completed"}


async def test_stream_continues_after_last_event_id(world: World) -> None:
    run_id = await told_run(world)
    async with world.client("demo") as client:
        answer = await client.get(f"/api/v1/runs/{run_id}/events/stream", headers={"Last-Event-ID": "4"})
        nothing = await client.get(f"/api/v1/runs/{run_id}/events/stream", headers={"Last-Event-ID": "6"})
    assert [event for _, event, _ in read_stream(answer.text)] == [*STORY[4:], "end"]
    assert [event for _, event, _ in read_stream(nothing.text)] == ["end"]


async def test_stream_follows_a_running_run(world: World) -> None:
    record = await make_running(world.wiring)
    async with world.client("demo") as client:
        stream = asyncio.create_task(follow(client, record.run.id))
        await waiting(world, record.run.id)
        await finish(world.wiring, record, RunStatus.FAILED)
        messages = read_stream(await asyncio.wait_for(stream, 10))
    assert [event for _, event, _ in messages] == ["run_started", "run_resuming", "run_failed", "end"]


async def test_stream_ends_with_its_credential(world: World) -> None:
    record = await make_running(world.wiring)
    async with world.client("demo") as client:
        stream = asyncio.create_task(follow(client, record.run.id))
        await waiting(world, record.run.id)
        (key,) = [key for key in await world.wiring.api_keys.list_all() if key.name == "demo"]
        await world.wiring.api_keys.revoke(key.id)
        world.wiring.credentials.forget(world.tokens["demo"])
        world.wiring.watch.wake_all()
        messages = read_stream(await asyncio.wait_for(stream, 10))
    assert [event for _, event, _ in messages] == ["run_started"]


async def test_events_of_a_foreign_run_are_not_found(world: World) -> None:
    record = await make_running(world.wiring, owner="other")
    async with world.client("demo") as client:
        page = await client.get(f"/api/v1/runs/{record.run.id}/events")
        stream = await client.get(f"/api/v1/runs/{record.run.id}/events/stream")
    assert (page.status_code, stream.status_code) == (404, 404)
    assert stream.headers["content-type"] == "application/problem+json"


async def follow(client: AsyncClient, run_id: str) -> str:
    return (await client.get(f"/api/v1/runs/{run_id}/events/stream")).text
