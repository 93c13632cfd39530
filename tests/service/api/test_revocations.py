"""What a revoked key asked is withdrawn for good, over HTTP; a rotated key's work goes on."""

from typing import Any

from service.store.people import ApiKey
from tests.service.api.aap.worlds import make_provisioner
from tests.service.api.test_execution import approved, ask, decide, post
from tests.service.worlds import World
from workers.withdrawals import Withdrawals


async def key_of(world: World, name: str = "demo") -> ApiKey:
    return next(key for key in await world.wiring.api_keys.list_all() if key.name == name)


async def revoke(world: World, key: ApiKey) -> None:
    async with world.client("root") as root:
        assert (await root.post(f"/api/v1/keys/{key.id}/revoke")).status_code == 200


async def renew(world: World, name: str = "demo") -> None:
    """Give the agent a new key of its old name."""
    _, world.tokens[name] = await world.wiring.api_keys.create(name)


async def read(world: World, suspension_id: str, who: str = "root") -> dict[str, Any]:
    async with world.client(who) as client:
        found: dict[str, Any] = (await client.get(f"/api/v1/suspensions/{suspension_id}")).json()
    return found


async def test_the_run_names_the_key_that_asked_for_it(world: World) -> None:
    asked = (await ask(world)).json()
    assert asked["run"]["key_id"] == (await key_of(world)).id
    async with world.client("anna") as anna:
        run = (await anna.post("/api/v1/runs", json={"agent": "demo", "input": "x"})).json()
    assert (await read(world, run["suspension_id"]))["run"]["key_id"] is None  # a session is no key


async def test_what_a_revoked_key_asked_cannot_be_decided_any_more(world: World) -> None:
    asked, key = (await ask(world)).json(), await key_of(world)
    await revoke(world, key)
    found = await read(world, asked["id"])
    assert found["status"] == "cancelled"
    assert found["end"]["error"] == f"Cancelled by desk: Key {key.id} of demo, which started the run, was revoked"
    word = {"action": "approve", "digest": asked["items"][0]["digest"]}
    answer = await post(world, "anna", f"{asked['id']}/items/i1/decision", body=word)
    assert answer.status_code == 409


async def test_a_namesake_cannot_spend_the_permit_of_a_revoked_key(world: World) -> None:
    item, key = await approved(world), await key_of(world)
    await world.wiring.api_keys.revoke(key.id)  # nobody has swept yet
    await renew(world)
    await world.wiring.revocation_cache.find(fresh=True)
    spent = await post(world, "demo", f"{item}/redeem", "me-1")
    assert (spent.status_code, spent.json()["type"]) == (409, "/problems/withdrawn")
    assert key.id in spent.json()["detail"]


async def test_a_namesake_is_not_told_to_go_on_with_a_call_begun_before(world: World) -> None:
    item, key = await approved(world), await key_of(world)
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).status_code == 200
    await world.wiring.api_keys.revoke(key.id)
    await renew(world)
    await world.wiring.revocation_cache.find(fresh=True)
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).json()["type"] == "/problems/withdrawn"


async def test_a_namesake_who_sends_the_same_request_gets_the_withdrawn_one(world: World) -> None:
    asked = (await ask(world, key="order-1")).json()
    await revoke(world, await key_of(world))
    await renew(world)
    again = (await ask(world, key="order-1")).json()
    assert (again["id"], again["status"]) == (asked["id"], "cancelled")


async def test_a_reviewers_revoked_key_withdraws_only_what_it_asked_itself(world: World) -> None:
    key, world.tokens["script"] = await world.wiring.api_keys.create("anna", kind="reviewer")
    ids = {}
    for who in ("anna", "script"):
        async with world.client(who) as client:
            started = (await client.post("/api/v1/runs", json={"agent": "demo", "input": "x"})).json()
            ids[who] = started["suspension_id"]
    await revoke(world, key)
    assert (await read(world, ids["script"]))["status"] == "cancelled"
    assert (await read(world, ids["anna"]))["status"] == "decided"


async def test_a_rotated_keys_successor_goes_on_with_what_was_asked(world: World) -> None:
    waits, item, key = (await ask(world)).json(), await approved(world), await key_of(world)
    _, world.tokens["demo"] = await world.wiring.api_keys.rotate(key.id, 0)
    await Withdrawals(world.wiring, again_ms=0).sweep()
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).status_code == 200
    await decide(world, waits)
    assert (await post(world, "demo", f"{waits['id']}/items/i1/redeem", "me-2")).status_code == 200


async def test_revoking_the_successor_withdraws_what_the_ended_key_asked(world: World) -> None:
    item, key = await approved(world), await key_of(world)
    successor, _ = await world.wiring.api_keys.rotate(key.id, 0)
    await revoke(world, successor)
    assert (await read(world, item.partition("/")[0]))["status"] == "cancelled"


async def test_revoking_a_key_in_its_overlap_leaves_the_successors_work(world: World) -> None:
    first, key = (await ask(world)).json(), await key_of(world)
    _, world.tokens["demo"] = await world.wiring.api_keys.rotate(key.id, 3600)
    second = (await ask(world)).json()
    await revoke(world, key)
    assert (await read(world, first["id"]))["status"] == "cancelled"
    assert (await read(world, second["id"]))["status"] == "pending"


async def test_the_clock_withdraws_what_a_service_that_died_left_behind(world: World) -> None:
    asked, key = (await ask(world)).json(), await key_of(world)
    await world.wiring.api_keys.revoke(key.id)
    withdrawals = Withdrawals(world.wiring, again_ms=0)
    await withdrawals.sweep()
    assert (await read(world, asked["id"]))["status"] == "cancelled"
    assert not (await key_of(world)).withdrawn
    await withdrawals.sweep()  # once more, for a request that was under way at the revocation
    assert (await key_of(world)).withdrawn


async def test_an_instance_goes_on_without_the_provisioner_that_made_it(world: World) -> None:
    """The protocol ends an instance by its deletion; its credential is no part of the provisioner's key."""
    token = await make_provisioner(world.wiring)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "make"}
    async with world.client() as client:
        made = (await client.post("/api/aap/v1/instances", json={}, headers=headers)).json()
        await world.wiring.api_keys.revoke((await key_of(world, "platform")).id)
        own = {"Authorization": f"Bearer {made['credential']['token']}", "Idempotency-Key": "ask"}
        sent = {"tool": "refund", "arguments": {}, "timeout": "5m"}
        asked = await client.post("/api/aap/v1/requests", json=sent, headers=own)
        assert asked.status_code == 201, asked.text
        assert (await client.get(f"/api/aap/v1/requests/{asked.json()['id']}", headers=own)).status_code == 200
