"""A record that a later version wrote is skipped, counted and named; everybody else goes on."""

import json
from typing import Any

import pytest

from service.core.store.keys import KEYS, SESSIONS, TenantKeys
from service.features.operate.diagnostics import diagnose
from tests.builders import make_pending
from tests.service.worlds import World

STORED = TenantKeys("default")


def newer(raw: bytes | str | None, **changes: Any) -> str:
    """Return a record with a field that this version does not know."""
    return json.dumps({**json.loads(raw or b"{}"), **changes, "mood": "calm"})


async def write_newer(world: World, key: str, name: str, raw: bytes | str | None, **changes: Any) -> None:
    await world.wiring.runs._redis.hset(key, name, newer(raw, **changes))


async def read_all(world: World) -> None:
    """Read what people and agents read."""
    async with world.client("root") as root, world.client("demo") as demo:
        for path in ("reviewers", "keys", "suspensions", "runs", "groups", "absences", "freezes", "activity"):
            assert (await root.get(f"/api/v1/{path}")).status_code == 200, path
        assert (await root.get("/api/v1/webhooks/endpoints")).status_code == 200
        assert (await demo.get("/api/v1/runs")).status_code == 200
        assert (await root.get("/readyz")).json()["unreadable"] == 1


async def test_newer_person_is_skipped_and_counted(world: World) -> None:
    redis = world.wiring.runs._redis
    raw = await redis.hget(STORED.reviewers, "anna")
    await write_newer(world, STORED.reviewers, "anna", raw)
    async with world.client("root") as root:
        found = (await root.get("/api/v1/reviewers")).json()["reviewers"]
        assert [one["name"] for one in found] == ["root"]
    await read_all(world)
    (finding,) = [one async for one in diagnose(world.wiring) if one.part == "records"]
    assert not finding.ok
    assert "person anna: mood" in finding.message
    assert (await world.app.state.readings.find()).unreadable == 1  # `sayso_unreadable_records`


async def test_newer_key_lets_nobody_in_and_hides_no_other(world: World) -> None:
    redis, index = world.wiring.runs._redis, await world.wiring.runs._redis.hgetall(STORED.api_keys)
    demo = next(one for one in await world.wiring.api_keys.list_all() if one.name == "other")
    key_hash = next(str(value, "utf-8") for name, value in index.items() if str(name, "utf-8") == demo.id)  # type: ignore[arg-type]
    await redis.set(f"{KEYS}{key_hash}", newer(await redis.get(f"{KEYS}{key_hash}")))
    async with world.client("other") as other:
        assert (await other.get("/api/v1/runs")).status_code == 401
    await read_all(world)


@pytest.mark.parametrize(
    ("key", "name", "record"),
    [
        (STORED.groups, "payments", {"name": "payments", "created_at_ms": 1}),
        (STORED.absences, "anna", {"absences": []}),
        (STORED.endpoints, "end_1", {"id": "end_1"}),
    ],
)
async def test_newer_row_is_skipped_and_counted(world: World, key: str, name: str, record: dict[str, Any]) -> None:
    await write_newer(world, key, name, json.dumps(record))
    await read_all(world)


async def test_newer_freeze_freezes_everything(world: World) -> None:
    record = {"id": "frz_1", "scope": "tool:refund", "reason": "odd", "by": "root", "at_ms": 1}
    await write_newer(world, STORED.freezes, "frz_1", json.dumps(record))
    (freeze,) = await world.wiring.freezes.in_force(fresh=True)
    assert freeze.scope == "all"
    await make_pending(world.wiring)
    await read_all(world)


async def test_newer_session_lets_nobody_in(world: World) -> None:
    redis = world.wiring.runs._redis
    async for name in redis.scan_iter(f"{SESSIONS}*"):
        raw = await redis.get(name)
        if b'"name":"anna"' in (raw or b""):
            await redis.set(name, newer(raw))
    world.wiring.credentials.forget(world.tokens["anna"])
    async with world.client("anna") as anna, world.client("root") as root:
        assert (await anna.get("/api/v1/runs")).status_code == 401
        assert (await root.get("/api/v1/reviewers/anna/sessions")).status_code == 200


async def test_newer_preferences_are_not_overwritten(world: World) -> None:
    await write_newer(world, STORED.preferences, "anna", "{}")
    async with world.client("anna") as anna:
        assert (await anna.get("/api/v1/account/preferences")).status_code == 200
        refused = await anna.put("/api/v1/account/preferences", json={"time_zone": "Europe/Berlin"})
        assert refused.json()["type"] == "/problems/unreadable", refused.text
    assert await world.wiring.runs._redis.hget(STORED.preferences, "anna") == newer("{}").encode()
