"""Groups over HTTP, and decisions of their members by every way in."""

from typing import Any

from httpx import AsyncClient

from sayso.core.clock import iso_utc
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from service.core.auth.roles import find_rights
from tests.builders import ask, make_pending, make_person
from tests.service.worlds import World

GROUPS = "/api/v1/groups"


async def test_groups_are_created_read_changed_and_deleted(world: World) -> None:
    hours = {"time_zone": "Europe/Berlin", "country": "DE"}
    async with world.client("root") as root, world.client("anna") as anna:
        body = {"name": "payments", "members": ["anna"], "working_hours": hours}
        made = await root.post(GROUPS, json=body)
        assert made.status_code == 201
        assert made.json()["working_hours"]["hours"]["start"] == "09:00"
        assert (await root.post(GROUPS, json=body)).status_code == 409
        assert (await anna.get(GROUPS)).json() == {"groups": [made.json()]}
        changed = await root.put(f"{GROUPS}/payments", json={"members": ["root"], "editors": ["anna"]})
        assert (changed.json()["members"], changed.json()["editors"]) == (["root"], ["anna"])
        edited = await anna.put(f"{GROUPS}/payments", json={"members": ["anna"], "editors": ["anna"]})
        assert (await anna.get(f"{GROUPS}/payments")).json() == edited.json()
        assert (await anna.delete(f"{GROUPS}/payments")).status_code == 403
        assert (await root.delete(f"{GROUPS}/payments")).status_code == 204
        assert (await anna.get(f"{GROUPS}/payments")).status_code == 404


async def test_groups_are_refused_to_others(world: World) -> None:
    async with world.client("anna") as anna, world.client("demo") as demo, world.client("root") as root:
        await root.post(GROUPS, json={"name": "payments", "members": []})
        refused = [
            await anna.post(GROUPS, json={"name": "ops", "members": []}),
            await anna.put(f"{GROUPS}/payments", json={"members": ["anna"]}),
            await demo.get(GROUPS),
        ]
        invalid = await root.post(GROUPS, json={"name": "ops", "members": ["nobody"]})
        unknown = await root.put(f"{GROUPS}/ops", json={"members": []})
    assert [one.status_code for one in refused] == [403, 403, 403]
    assert (invalid.status_code, unknown.status_code) == (422, 404)


async def test_editor_needs_a_session_and_no_key(world: World) -> None:
    _, world.tokens["anna-key"] = await world.wiring.api_keys.create("anna", kind="reviewer")
    await world.wiring.groups.create("payments", (), ("anna",), "root")
    async with world.client("anna-key") as key:
        answer = await key.put(f"{GROUPS}/payments", json={"members": ["anna"], "editors": ["anna"]})
        assert answer.status_code == 403
        assert (await key.get(f"{GROUPS}/payments")).json()["members"] == []


async def pend(world: World, **terms: Any) -> SuspensionRecord:
    return await make_pending(world.wiring, ask(terms=RuleTerms.model_validate(terms)))


async def decide(client: AsyncClient, record: SuspensionRecord) -> Any:
    path = f"/api/v1/suspensions/{record.id}/items/i1/decision"
    return await client.post(path, json={"action": "approve", "digest": record.items[0].digest})


async def test_member_decides_with_session_and_with_key(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    _, world.tokens["anna-key"] = await world.wiring.api_keys.create("anna", kind="reviewer")
    await world.wiring.groups.create("payments", ("anna",), (), "root")
    await world.wiring.groups.create("others", ("anna",), (), "root")
    for who in ("anna", "anna-key"):
        record = await pend(world, reviewers=["group:payments"])
        async with world.client(who) as client, world.client("ben") as ben:
            assert (await decide(ben, record)).status_code == 403
            answer = await decide(client, record)
            assert answer.status_code == 200, answer.text
        (decision,) = (await world.wiring.desk.suspensions.read(record.id)).record.items[0].decisions
        assert (decision.by.id, decision.by.groups) == ("anna", ("payments",))


async def test_membership_counts_at_the_time_of_the_decision(world: World) -> None:
    record = await pend(world, reviewers=["group:payments"])
    await world.wiring.groups.create("payments", (), (), "root")
    async with world.client("anna") as anna:
        assert (await decide(anna, record)).status_code == 403
        await world.wiring.groups.update("payments", ("anna",), (), "root", find_rights(["admin"], {}))
        world.wiring.credentials.forget(world.tokens["anna"])
        assert (await decide(anna, record)).status_code == 200


async def test_member_extends_the_deadline(world: World) -> None:
    await world.wiring.groups.create("payments", ("anna",), (), "root")
    record = await pend(world, reviewers=["group:payments"], extend_by_s=600)
    item = record.items[0]
    async with world.client("anna") as anna, world.client("root") as root:
        path = f"/api/v1/suspensions/{record.id}/items/i1/extend"
        body = {"until": iso_utc(item.terms.extend_until_ms)}
        assert (await root.post(path, json=body)).status_code == 403
        answer = await anna.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found = (await world.wiring.desk.suspensions.read(record.id)).record
    assert found.items[0].terms.deadline_at_ms > item.terms.deadline_at_ms
