"""Comments, files, events, replays, messages and permissions of a later version are skipped, counted and kept."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from httpx import AsyncClient

from sayso.core.clock import now_ms
from sayso.errors import Unreadable
from service.core.store.announcements import Delivery
from service.core.store.deliveries import Deliveries
from service.core.store.keys import TenantKeys
from service.features.permissions.desk import Granting
from service.features.whatif.store import Replay, ReplayStore
from tests.builders import make_pending, person
from tests.service.edge.api.test_external_events import body, note, tell
from tests.service.worlds import World

KEYS = TenantKeys("default")
MARK = "mood"


def newer(raw: Any, head: int = 0) -> str:
    """Return a record with a field that this version does not know, after `head` parts that precede its JSON."""
    *before, doc = (raw.decode() if isinstance(raw, bytes) else raw).split("|", head)
    return "|".join([*before, json.dumps({**json.loads(doc), MARK: "calm"})])


async def count_unreadable(client: AsyncClient) -> int:
    return int((await client.get("/readyz")).json()["unreadable"])


async def test_newer_comment_is_skipped_and_counted(world: World) -> None:
    record = await make_pending(world.wiring)
    key = KEYS.comments(record.run.id)
    async with world.client("anna") as anna:
        for said in ("first", "second"):
            made = await anna.post(f"/api/v1/suspensions/{record.id}/items/i1/comments", json={"text": said})
            assert made.status_code == 200, made.text
        redis = world.wiring.runs._redis
        await redis.lset(key, 0, newer(await redis.lindex(key, 0), 1))
        found = await anna.get(f"/api/v1/runs/{record.run.id}/comments")
        assert [one["text"] for one in found.json()["comments"]] == ["second"]
        assert await count_unreadable(anna) == 1


async def test_newer_attached_file_is_skipped_and_counted(world: World) -> None:
    record = await make_pending(world.wiring)
    place = f"/api/v1/suspensions/{record.id}/items/i1/attachments"
    key = KEYS.files(record.run.id)
    async with world.client("anna") as anna:
        for name in ("a.txt", "b.txt"):
            made = await anna.post(place, json={"name": name, "content": base64.b64encode(name.encode()).decode()})
            assert made.status_code == 200, made.text
        redis = world.wiring.runs._redis
        held = await redis.hgetall(key)
        (field,) = [name for name, raw in held.items() if b"a.txt" in raw]
        await redis.hset(key, field, newer(held[field], 1))
        found = await anna.get(place)
        assert [one["name"] for one in found.json()["attachments"]] == ["b.txt"]
        assert await count_unreadable(anna) == 1


async def test_newer_external_event_is_skipped_and_passed(world: World) -> None:
    run_id = (await make_pending(world.wiring)).run.id
    place, key = f"/api/v1/runs/{run_id}/events/external", KEYS.external_events(run_id)
    async with world.client("demo") as demo, world.client("anna") as anna:
        assert (await tell(demo, run_id, body(note("a"), note("b")))).status_code == 200
        redis = world.wiring.runs._redis
        held: Any = await redis.lindex(key, 0)
        await redis.lset(key, 0, f"v2|{held.decode()}")
        page = (await anna.get(place)).json()
        assert ([one["seq"] for one in page["events"]], page["next_after"]) == ([2], 2)
        first = (await anna.get(f"{place}?limit=1")).json()
        assert (first["events"], first["next_after"]) == ([], 1)
        assert (await anna.get(f"/api/v1/runs/{run_id}/timeline")).status_code == 200
        assert await count_unreadable(anna) == 1


async def test_newer_replay_is_skipped_and_named(world: World) -> None:
    replays, redis = world.wiring.part(ReplayStore), world.wiring.runs._redis
    for name in ("rpl_1", "rpl_2"):
        await replays.create(
            Replay(
                id=name, by="root", file="", version="v", from_ms=0, to_ms=1, started_at_ms=1, updated_at_ms=now_ms()
            )
        )
    await redis.set(KEYS.replay("rpl_1"), newer(await redis.get(KEYS.replay("rpl_1"))))
    assert [one.id for one in await replays.list_all(now_ms())] == ["rpl_2"]
    with pytest.raises(Unreadable, match="replay rpl_1 cannot be read: mood"):
        await replays.read("rpl_1", now_ms())
    async with world.client("root") as root:
        assert await count_unreadable(root) == 1


async def test_newer_message_of_a_webhook_is_skipped_and_kept(world: World) -> None:
    deliveries, redis = world.wiring.part(Deliveries), world.wiring.runs._redis
    for name in ("m1", "m2"):
        await deliveries.add([Delivery(id=name, endpoint_id="e", body="{}", until_ms=2**50)], now_ms())
        seen = await deliveries.read(name)
        assert seen is not None
        claimed = await deliveries.claim(seen, now_ms())
        assert claimed is not None
        assert await deliveries.postpone(claimed, 1, 500, "HTTP 500")
    key = KEYS.delivery("m1")
    await redis.set(key, newer(await redis.get(key), 1))
    assert [one.id for one in await deliveries.list_failures(now_ms())] == ["m2"]
    with pytest.raises(Unreadable, match="message m1"):
        await deliveries.send_again("m1", 2**50, now_ms())
    await deliveries.follow_back(1_000, now_ms())
    held: Any = await redis.get(key)
    assert MARK in held.decode()
    async with world.client("root") as root:
        assert (await root.get("/api/v1/webhooks/failures")).status_code == 200
        assert await count_unreadable(root) == 1


@pytest.mark.parametrize(
    ("kind", "find_key", "path"),
    [("grant", lambda: KEYS.grants, "/api/v1/grants"), ("mandate", lambda: KEYS.mandates, "/api/v1/mandates")],
)
async def test_newer_permission_is_skipped_counted_and_kept(
    world: World, kind: str, find_key: Callable[[], str], path: str
) -> None:
    redis = world.wiring.runs._redis
    record = json.dumps({"id": f"{kind}_1", MARK: "calm"})
    await redis.hset(find_key(), f"{kind}_1", record)
    async with world.client("root") as root:
        listed = await root.get(path)
        assert listed.status_code == 200, listed.text
        granting = world.wiring.feature(Granting) if kind == "grant" else world.wiring.feature(Granting).mandates
        with pytest.raises(Unreadable, match=f"{kind} {kind}_1"):
            await granting.revoke(f"{kind}_1", person("anna"))
        assert await count_unreadable(root) == 1
    assert await redis.hget(find_key(), f"{kind}_1") == record.encode()


async def test_newer_definition_refuses_its_own_item_alone(world: World) -> None:
    first, other = await make_pending(world.wiring), await make_pending(world.wiring)
    redis, digest = world.wiring.runs._redis, first.items[0].tool.definition or ""
    await redis.hset(KEYS.definitions, digest, newer(await redis.hget(KEYS.definitions, digest)))
    async with world.client("anna") as anna:
        listed = (await anna.get("/api/v1/suspensions")).json()["suspensions"]
        assert {one["id"] for one in listed} >= {first.id, other.id}
        args = {"order": "A-1", "amount": 3}
        decision = {"action": "approve", "digest": first.items[0].digest, "args": args}
        place = f"/api/v1/suspensions/{first.id}/items/i1/decision"
        refused = await anna.post(place, json=decision)
        assert refused.json()["type"] == "/problems/unreadable", refused.text
        assert await count_unreadable(anna) == 1
