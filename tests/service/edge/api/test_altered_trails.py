"""Changes in the middle of a trail, starts without a decision and forged keys are named by API, page and doctor."""

from typing import Any

from sayso.core.records.chain import write_entry, write_events
from sayso.core.records.events import Event as TrailEvent
from sayso.core.records.events import EventType, TrailEntry, TrailHead
from service.core.auth.reviewers import hash_token
from service.core.store.inspection import describe_undecided
from service.core.store.keys import KEYS
from service.core.store.people import ApiKey
from service.features.operate.diagnostics import diagnose
from tests.service.edge.api.test_execution import approved, ask, post
from tests.service.worlds import World


async def alter(world: World, run_id: str, place: int) -> None:
    """Change who did something, as somebody with the store's password can."""
    redis, key = world.wiring.runs._redis, world.wiring.runs._keys.trail(run_id)
    entry = TrailEntry.model_validate_json(await redis.lindex(key, place) or b"")
    changed = entry.model_copy(update={"data": {**entry.data, "note": "forged"}})
    await redis.lset(key, place, write_entry(changed))


async def find(world: World, part: str) -> tuple[bool, str]:
    (found,) = [one async for one in diagnose(world.wiring) if one.part == part]
    return found.ok, found.message


async def read(world: World, run_id: str, **query: Any) -> Any:
    async with world.client("root") as root:
        return (await root.get(f"/api/v1/runs/{run_id}/events", params=query)).json()["fault"]


async def redeemed(world: World) -> str:
    item = await approved(world)
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).status_code == 200
    async with world.client("root") as root:
        found = (await root.get(f"/api/v1/suspensions/{item.partition('/')[0]}")).json()
    run_id: str = found["run"]["id"]
    return run_id


async def test_event_changed_in_the_middle_is_named_by_api_and_doctor(world: World) -> None:
    run_id = await redeemed(world)
    assert (await read(world, run_id), await find(world, "trails")) == (
        None,
        (True, "The newest 1 are whole: events fit the ones before, and calls started after decisions."),
    )
    await alter(world, run_id, 1)
    named = "Event 2 does not follow from the event before it"
    assert named in await read(world, run_id)
    assert named in await read(world, run_id, after=1)
    assert await read(world, run_id, after=3) is None  # these events fit the one before them
    ok, message = await find(world, "trails")
    assert not ok
    assert named in message


async def test_redeemed_call_without_a_decision_is_a_finding(world: World) -> None:
    suspension = (await ask(world)).json()
    run_id = suspension["run"]["id"]
    found = await world.wiring.desk.suspensions.read(suspension["id"])
    data = {"item_id": "i1", "call_id": suspension["items"][0]["call_id"], "attempt": 1, "digest": "0" * 64}
    _, (entry,) = write_events(found.head, (TrailEvent(EventType.PERMIT_REDEEMED, data),), found.now_ms)
    await world.wiring.runs._redis.rpush(world.wiring.runs._keys.trail(run_id), entry)
    assert "starts a call that nobody decided" in await world.wiring.trails.find_fault(run_id)
    assert await read(world, run_id)


async def test_call_that_the_rules_allowed_needs_no_decision(world: World) -> None:
    events = (
        TrailEvent(EventType.POLICY_DECISION, {"action": "allow", "call_id": "c1", "index": 0}),
        TrailEvent(EventType.PERMIT_REDEEMED, {"item_id": "i1", "call_id": "c1"}),
        TrailEvent(EventType.PERMIT_REDEEMED, {"item_id": "i2", "call_id": "c2"}),
    )
    _, raw = write_events(TrailHead(), events, 1)
    entries = [TrailEntry.model_validate_json(one) for one in raw]
    assert describe_undecided(entries[:2]) == ""
    assert "Event 3" in describe_undecided(entries)


def test_started_call_without_an_id_needs_a_decision_of_its_own() -> None:
    events = (
        TrailEvent(EventType.POLICY_DECISION, {"action": "allow", "index": 0}),
        TrailEvent(EventType.DECISION_RECORDED, {"verdict": ["approved"], "item_id": ["i2"], "call_id": {}}),
        TrailEvent(EventType.PERMIT_REDEEMED, {"item_id": "i2"}),
    )
    _, raw = write_events(TrailHead(), events, 1)
    assert "Event 3" in describe_undecided([TrailEntry.model_validate_json(one) for one in raw])


async def test_forged_key_beside_the_index_is_listed_and_revoked(world: World) -> None:
    forged = ApiKey(id="key_forged", tenant="default", name="anna", kind="reviewer", created_at_ms=1)
    await world.wiring.runs._redis.set(f"{KEYS}{hash_token('forged')}", forged.model_dump_json())
    world.tokens["forged"] = "forged"
    async with world.client("root") as root:
        keys = {one["id"]: one for one in (await root.get("/api/v1/keys")).json()["keys"]}
        assert not keys["key_forged"]["listed"]
        assert all(one["listed"] for key_id, one in keys.items() if key_id != "key_forged")
        ok, message = await find(world, "keys")
        assert not ok
        assert "key_forged of the reviewer anna" in message
        assert (await root.post("/api/v1/keys/key_forged/revoke")).status_code == 200
    async with world.client("forged") as client:
        assert (await client.get("/api/v1/runs")).status_code == 401
    assert (await find(world, "keys"))[0]


async def test_revoked_key_stays_listed_with_maker_and_last_use(world: World) -> None:
    async with world.client("root") as root:
        made = (await root.post("/api/v1/keys", json={"name": "crm"})).json()
        world.tokens["crm"] = made["key"]
        async with world.client("crm") as crm:
            assert (await crm.get("/api/v1/agents")).status_code == 200
        await root.post(f"/api/v1/keys/{made['id']}/revoke")
        (found,) = [one for one in (await root.get("/api/v1/keys")).json()["keys"] if one["id"] == made["id"]]
    assert found["revoked_at"] is not None
    assert found["created_by"] == "root"
    assert found["last_used_at"] is not None


async def test_changed_entry_of_the_activity_log_is_a_finding(world: World) -> None:
    await world.wiring.activity.record("tried", "root", door="api")
    assert (await find(world, "activity"))[0]
    key = world.wiring.runs._keys.activity
    raw = str(await world.wiring.runs._redis.lindex(key, 0) or b"", "utf-8")  # type: ignore[arg-type]
    await world.wiring.runs._redis.lset(key, 0, raw.replace("root", "anna"))
    assert not (await find(world, "activity"))[0]


async def test_link_codes_are_stored_under_a_key_outside_of_the_store(world: World) -> None:
    world.wiring.contacts.use_code_key(b"of the channels file")
    made = await world.wiring.contacts.create_code("anna", "slack")
    plain, keyed = hash_token(f"slack {made.code}"), world.wiring.contacts.hash_code("slack", made.code)
    redis, keys = world.wiring.runs._redis, world.wiring.runs._keys
    assert await redis.exists(keys.contact_code(plain)) == 0
    assert await redis.exists(keys.contact_code(keyed)) == 1
    world.wiring.contacts.use_code_key(b"another")
    assert world.wiring.contacts.hash_code("slack", made.code) != keyed
