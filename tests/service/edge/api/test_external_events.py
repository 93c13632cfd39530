"""Events of other software: stored once, limited, reported by the owner only, merged with the trail."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient

from sayso.client import clients as client
from sayso.errors import IdempotencyConflict, InvalidInput
from service.core.settings import Settings
from service.core.store.connection.watch import wait_woken
from service.core.store.runs import external_events
from tests.builders import approve, finish, make_pending, make_running
from tests.sayso.timeline.stories import STORIES
from tests.service.servers import served
from tests.service.worlds import World, read_store


def body(*events: dict[str, Any], source_format: str = "sayso", first: int = 1, **more: Any) -> dict[str, Any]:
    numbered = [{"seq": seq, "event": event} for seq, event in enumerate(events, start=first)]
    return {"source_format": source_format, "events": numbered, **more}


def note(text: str) -> dict[str, Any]:
    return {"type": "note", "data": {"text": text}}


async def tell(client: AsyncClient, run_id: str, sent: dict[str, Any]) -> Any:
    return await client.post(f"/api/v1/runs/{run_id}/events", json=sent)


@pytest.mark.parametrize("source_format", list(STORIES))
async def test_external_events_are_stored_unchanged_and_merged(world: World, source_format: str) -> None:
    run_id = (await make_pending(world.wiring)).run.id
    events = STORIES[source_format]
    async with world.client("demo") as client:
        answer = await tell(client, run_id, body(*events, source_format=source_format))
        raw = (await client.get(f"/api/v1/runs/{run_id}/events/external")).json()
        timeline = (await client.get(f"/api/v1/runs/{run_id}/timeline")).json()
    assert answer.json() == {"added": len(events), "repeated": 0, "count": len(events)}
    assert [one["event"] for one in raw["events"]] == events
    assert raw["next_after"] == len(events)
    ours = [one["event"]["type"] for one in timeline["entries"] if one["event"]]
    theirs = [one["external"] for one in timeline["entries"] if one["external"]]
    assert ours == [one.type for one in await world.wiring.runs.trail(run_id)]
    assert [one["name"] for one in theirs if one["kind"] == "call"] == ["pay"]
    assert timeline["next_skip"] is None


async def test_external_events_do_not_enter_the_trail(world: World) -> None:
    run_id = (await make_pending(world.wiring)).run.id
    async with world.client("demo") as client:
        before = (await client.get(f"/api/v1/runs/{run_id}/events")).json()
        await tell(client, run_id, body({"type": "run_completed", "data": {}}))
        assert (await client.get(f"/api/v1/runs/{run_id}/events")).json() == before
        assert (await client.get(f"/api/v1/runs/{run_id}")).json()["status"] == "suspended"


async def test_repeated_event_is_stored_once(world: World) -> None:
    run_id = (await make_running(world.wiring)).run.id
    async with world.client("demo") as client:
        await tell(client, run_id, body(note("a"), note("b")))
        again = await tell(client, run_id, body(note("b"), note("c"), first=2))
        other = await tell(client, run_id, body(note("b"), first=2, source="worker-2"))
    assert again.json() == {"added": 1, "repeated": 1, "count": 3}
    assert other.json() == {"added": 1, "repeated": 0, "count": 4}


async def test_reused_number_refuses_the_whole_request(world: World, clean_store_url: str) -> None:
    run_id = (await make_running(world.wiring)).run.id
    async with world.client("demo") as client:
        await tell(client, run_id, body(note("a"), note("b")))
        before = await read_store(clean_store_url)
        taken = await tell(client, run_id, body(note("c"), note("new"), first=2))
        twice = {"source_format": "sayso", "events": [{"seq": 7, "event": note("x")}, {"seq": 7, "event": note("y")}]}
        refused = await tell(client, run_id, twice)
    for answer, seq in ((taken, 2), (refused, 7)):
        assert answer.status_code == 409
        assert answer.json()["type"] == "/problems/idempotency-conflict"
        assert f"Event {seq} of 'agent' is saved with other content" in answer.json()["detail"]
    assert await read_store(clean_store_url) == before


async def test_concurrent_repeats_are_stored_once(world: World) -> None:
    run_id = (await make_running(world.wiring)).run.id
    async with world.client("demo") as client:
        answers = await asyncio.gather(*(tell(client, run_id, body(note("a"), note("b"))) for _ in range(8)))
    assert sorted(one.json()["added"] for one in answers) == [0] * 7 + [2]
    assert {one.json()["count"] for one in answers} == {2}


async def test_new_events_notify_watchers_of_the_run(world: World) -> None:
    run_id = (await make_running(world.wiring)).run.id
    with world.wiring.watch.on(run_id) as moved:
        assert await wait_woken(moved, 10), "it is heard from now on"
        async with world.client("demo") as client:
            await tell(client, run_id, body(note("a")))
        assert await wait_woken(moved, 10)


async def test_only_the_owner_reports_events(world: World) -> None:
    run_id = (await make_running(world.wiring)).run.id
    statuses = []
    for who in ("other", "anna", "root", None):
        async with world.client(who) as client:
            statuses.append((await tell(client, run_id, body(note("a")))).status_code)
    assert statuses == [404, 403, 403, 401]
    async with world.client("other") as client:
        assert (await client.get(f"/api/v1/runs/{run_id}/events/external")).status_code == 404
        assert (await client.get(f"/api/v1/runs/{run_id}/timeline")).status_code == 404
    async with world.client("anna") as client:
        assert (await client.get(f"/api/v1/runs/{run_id}/timeline")).status_code == 200


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"source_format": "klingon", "events": [{"seq": 1, "event": {"a": 1}}]}, "$.source_format"),
        ({"source_format": "afk", "events": []}, "$.events"),
        ({"source_format": "afk", "events": [{"seq": 0, "event": {"a": 1}}]}, "$.events[0].seq"),
        ({"source_format": "afk", "events": [{"seq": "1", "event": {"a": 1}}]}, "$.events[0].seq"),
        ({"source_format": "afk", "events": [{"seq": 1, "event": {}}]}, "$.events[0].event"),
        ({"source_format": "afk", "events": [{"seq": 1, "event": "text"}]}, "$.events[0].event"),
        ({"source_format": "afk", "events": [{"seq": 1, "event": {"a": 1}, "x": 1}]}, "$.events[0].x"),
        (
            {"source_format": "afk", "events": [{"seq": 1, "at": "2026-11-21T12:00:00", "event": {"a": 1}}]},
            "has no zone",
        ),
        ({"source_format": "afk", "source": "a|b", "events": [{"seq": 1, "event": {"a": 1}}]}, "$.source"),
        ({"source_format": "afk", "events": [{"seq": 1, "event": {"a": "x" * 70_000}}]}, "over 65536 bytes"),
        ({"source_format": "afk", "events": [{"seq": n, "event": {"a": 1}} for n in range(1, 502)]}, "$.events"),
    ],
)
async def test_invalid_event_refuses_the_whole_request(
    world: World, sent: Any, says: str, clean_store_url: str
) -> None:
    run_id = (await make_running(world.wiring)).run.id
    before = await read_store(clean_store_url)
    async with world.client("demo") as client:
        answer = await tell(client, run_id, sent)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert await read_store(clean_store_url) == before


async def test_events_per_run_are_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = (await make_running(world.wiring)).run.id
    monkeypatch.setattr(external_events, "MOST_EVENTS", 3)
    async with world.client("demo") as client:
        await tell(client, run_id, body(note("a"), note("b")))
        many = await tell(client, run_id, body(note("c"), note("d"), first=3))
        fits = await tell(client, run_id, body(note("c"), first=3))
        monkeypatch.setattr(external_events, "MOST_BYTES", 300)
        monkeypatch.setattr(external_events, "MOST_EVENTS", 100)
        long = await tell(client, run_id, body(note("x" * 300), first=4))
    assert (many.status_code, fits.status_code, long.status_code) == (413, 200, 413)
    assert "has 2 events of 3" in many.json()["detail"]
    assert "bytes of events of 300" in long.json()["detail"]


async def test_external_events_are_paged(world: World) -> None:
    run_id = (await finish(world.wiring, await approve(world.wiring, await make_pending(world.wiring)))).run.id
    async with world.client("demo") as client:
        await tell(client, run_id, body(*(note(str(n)) for n in range(5))))
        first = (await client.get(f"/api/v1/runs/{run_id}/events/external?limit=3")).json()
        rest = (await client.get(f"/api/v1/runs/{run_id}/events/external?after={first['next_after']}")).json()
        page = (await client.get(f"/api/v1/runs/{run_id}/timeline?limit=4")).json()
        following = (await client.get(f"/api/v1/runs/{run_id}/timeline?limit=200&skip={page['next_skip']}")).json()
    assert [one["seq"] for one in first["events"] + rest["events"]] == [1, 2, 3, 4, 5]
    assert len(page["entries"]) == 4
    assert len(following["entries"]) == 5 + 6 - 4
    assert following["next_skip"] is None


async def test_client_reports_events_and_may_repeat_them(world: World, settings: Settings) -> None:
    run_id = (await make_running(world.wiring)).run.id
    transport = ASGITransport(app=world.app)
    async with client.AsyncClient("http://sayso.test", world.tokens["demo"], transport=transport) as desk:
        first = await desk.report_events(run_id, "sayso", [note("a"), note("b")])
        again = await desk.report_events(run_id, "sayso", [note("b"), note("c")], first_seq=2)
        with pytest.raises(IdempotencyConflict):
            await desk.report_events(run_id, "sayso", [note("other")])
    assert (first.added, again.added, again.repeated, again.count) == (2, 1, 1, 3)
    with served(settings) as url:
        count = await asyncio.to_thread(describe_plainly, url, world.tokens["demo"], run_id)
    assert count == 4


async def test_client_reports_the_time_of_each_event(world: World) -> None:
    run_id = (await make_pending(world.wiring)).run.id
    moment = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    transport = ASGITransport(app=world.app)
    async with client.AsyncClient("http://sayso.test", world.tokens["demo"], transport=transport) as desk:
        await desk.report_events(run_id, "afk", [note("a"), note("b")], at=[moment, None])
        again = await desk.report_events(run_id, "afk", [note("a"), note("b")], at=[moment, None])
        with pytest.raises(InvalidInput, match="one for each"):
            await desk.report_events(run_id, "afk", [note("c")], at=[moment, moment])
        with pytest.raises(InvalidInput, match="no time zone"):
            await desk.report_events(run_id, "afk", [note("c")], at=[moment.replace(tzinfo=None)])
    assert (again.added, again.repeated) == (0, 2)
    async with world.client("demo") as reader:
        entries = (await reader.get(f"/api/v1/runs/{run_id}/timeline")).json()["entries"]
    assert next(one["at"] for one in entries if one["external"]) == "2026-11-20T12:00:00.000Z"


def describe_plainly(url: str, key: str, run_id: str) -> int:
    with client.Client(url, key) as desk:
        return desk.report_events(run_id, "afk", [{"type": "warning", "message": "slow"}], source="afk").count
