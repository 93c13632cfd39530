"""Every act of an admin, every sign-in and every refusal is one log line and one entry in a hash chain."""

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from service.core.store.activity import SOURCE_REFUSALS, Activity
from service.core.store.connection.connecting import text
from tests.builders import PASSWORD, make_person
from tests.service.worlds import World


async def read(world: World, who: str = "root", **query: Any) -> dict[str, Any]:
    async with world.client(who) as client:
        answer = await client.get("/api/v1/activity", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def list_acts(world: World) -> list[tuple[str, str, str]]:
    entries = reversed((await read(world, limit=200))["activity"])
    return [(one["act"], one["by"], one["target"]) for one in entries]


async def sign_in(world: World, name: str, password: str = PASSWORD) -> int:
    async with world.client() as client:
        return (await client.post("/api/v1/sessions", json={"name": name, "password": password})).status_code


async def test_acts_of_an_admin_are_one_line_and_one_entry_each(world: World) -> None:
    acts = [
        ("POST", "/reviewers", {"name": "ben", "password": "a long sentence of mine"}),
        ("POST", "/reviewers/ben/password", {"password": "another long sentence"}),
        ("POST", "/reviewers/ben/manager", {"manager": "anna"}),
        ("POST", "/reviewers/ben/deactivate", None),
        ("POST", "/reviewers/ben/activate", None),
        ("DELETE", "/reviewers/ben/sessions", None),
        ("POST", "/keys", {"name": "crm", "owner": "ben"}),
        ("POST", "/groups", {"name": "payments", "members": ["anna"]}),
        ("PUT", "/groups/payments", {"members": ["ben"], "editors": []}),
        ("DELETE", "/groups/payments", None),
        ("POST", "/freezes", {"scope": "all", "reason": "Odd calls"}),
        ("PUT", "/reviewers/ben/preferences", {}),
    ]
    names = []
    with capture_logs() as logs:
        async with world.client("root") as root:
            for method, path, body in acts:
                answer = (
                    await root.request(method, f"/api/v1{path}", json=body)
                    if body is not None
                    else (await root.request(method, f"/api/v1{path}"))
                )
                assert answer.status_code < 300, (path, answer.text)
    names = [one[0] for one in await list_acts(world)]
    assert names == [
        *("person_added", "password_set", "manager_set", "person_deactivated", "person_activated", "sessions_ended"),
        *("key_created", "group_created", "group_changed", "group_deleted", "frozen", "preferences_saved"),
    ]
    assert [one["event"] for one in logs if one["event"] in names] == names
    assert all(one[1] == "root" for one in await list_acts(world))
    assert "sentence" not in str(await read(world))  # no secret is kept


async def test_acts_name_who_from_where_and_what(world: World) -> None:
    async with world.client("root") as root:
        await root.post("/api/v1/reviewers", json={"name": "ben", "password": "a long sentence", "roles": ["admin"]})
    entry = (await read(world))["activity"][0]
    assert (entry["by"], entry["door"], entry["address"], entry["target"]) == ("root", "api", "127.0.0.1", "ben")
    assert entry["data"] == {"name": "ben", "roles": "admin", "changed": "active: none → yes; roles: +admin"}


async def test_refused_acts_are_recorded(world: World) -> None:
    async with world.client("anna") as anna:
        assert (await anna.post("/api/v1/keys", json={"name": "crm"})).status_code == 403
    entry = (await read(world))["activity"][0]
    assert (entry["act"], entry["by"], entry["outcome"]) == ("key_created", "anna", "refused")


async def test_sign_ins_and_their_refusals_are_recorded(world: World) -> None:
    assert await sign_in(world, "anna") == 201
    for _ in range(3):
        assert await sign_in(world, "anna", "wrong wrong wrong") == 401
    entries = (await read(world))["activity"]
    assert [(one["act"], one["by"], one["outcome"], one["times"]) for one in reversed(entries)] == [
        ("signed_in", "anna", "done", 1),
        *(("signed_in", "", "refused", times) for times in (1, 2, 3)),
    ]
    assert [one["target"] for one in entries[:3]] == ["anna"] * 3


async def test_stranger_cannot_fill_the_log(world: World) -> None:
    for _ in range(100):
        await world.wiring.activity.refuse("signed_in", "", "no", door="web", address="203.0.113.9")
    entries = (await read(world, limit=200))["activity"]
    assert len(entries) == SOURCE_REFUSALS + 2  # and 32 and 64
    assert [one["times"] for one in entries[:2]] == [64, 32]


async def test_texts_of_strangers_are_bounded(world: World) -> None:
    assert await sign_in(world, "x" * 64, "y" * 1000) == 401
    assert await sign_in(world, "Robert'); drop", "wrong") == 401
    assert [one["target"] for one in (await read(world))["activity"]] == ["", "x" * 64]
    await world.wiring.activity.refuse("x" * 5000, "", "y\n" * 5000, door="web", address="z" * 5000)
    raw = await world.wiring.freezes._store._redis.lindex(world.wiring.freezes._store._keys.activity, -1)
    assert len(raw or b"") < 4000


async def test_unknown_credentials_are_recorded(world: World) -> None:
    world.tokens["nobody"] = "sayso_agent_nonsense"
    async with world.client("nobody") as nobody:
        assert (await nobody.get("/api/v1/runs")).status_code == 401
    entry = (await read(world))["activity"][0]
    assert (entry["act"], entry["outcome"], entry["by"]) == ("credential_used", "refused", "")
    assert "nonsense" not in str(entry)


@pytest.mark.parametrize(("who", "status"), [("anna", 403), ("demo", 403), ("root", 200), ("olga", 200)])
async def test_activity_is_for_admins_and_auditors(world: World, who: str, status: int) -> None:
    world.tokens["olga"] = await make_person(world.wiring, "olga", "reviewer", "auditor")
    async with world.client(who) as client:
        assert (await client.get("/api/v1/activity")).status_code == status


async def test_changed_entry_breaks_the_chain(world: World) -> None:
    for name in ("one", "two", "three"):
        await world.wiring.activity.record("tried", "root", door="api", target=name)
    assert await world.wiring.activity.check() is None
    redis, key = world.wiring.freezes._store._redis, world.wiring.freezes._store._keys.activity
    second = Activity.model_validate_json(await redis.lindex(key, 1) or b"")
    await redis.lset(key, 1, second.model_copy(update={"by": "anna"}).model_dump_json())
    assert await world.wiring.activity.check() == 2
    assert (await read(world))["broken_at"] == 2


async def test_removed_entry_breaks_the_chain(world: World) -> None:
    for name in ("one", "two", "three"):
        await world.wiring.activity.record("tried", "root", door="api", target=name)
    redis, key = world.wiring.freezes._store._redis, world.wiring.freezes._store._keys.activity
    await redis.lrem(key, 1, text(await redis.lindex(key, 1) or b""))
    assert await world.wiring.activity.check() == 2


async def test_entry_after_one_of_a_later_version_continues_the_chain(world: World) -> None:
    activity, redis = world.wiring.activity, world.wiring.freezes._store._redis
    key = world.wiring.freezes._store._keys.activity
    await activity.record("tried", "root", door="api")
    newer = {**json.loads(await redis.lindex(key, -1) or b""), "mood": "calm"}
    await redis.lset(key, -1, json.dumps(newer))
    await activity.record("tried", "root", door="api")
    (entry, *_) = (await activity.read_page(0, 1)).entries
    assert (entry.seq, entry.before) == (newer["seq"] + 1, newer["hash"])
