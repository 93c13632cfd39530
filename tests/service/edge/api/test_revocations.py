"""Revoking a key withdraws its runs for good; a rotated key's runs continue."""

from typing import Any

from service.core.store.people import ApiKey
from tests.service.edge.api.aap.clients import make_provisioner
from tests.service.edge.api.test_execution import approved, ask, decide, post
from tests.service.worlds import World
from workers.clock.ticks import Withdrawals


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


async def test_run_names_its_key(world: World) -> None:
    suspension = (await ask(world)).json()
    assert suspension["run"]["key_id"] == (await key_of(world)).id
    async with world.client("anna") as anna:
        run = (await anna.post("/api/v1/runs", json={"agent": "demo", "input": "x"})).json()
    assert (await read(world, run["suspension_id"]))["run"]["key_id"] is None  # a session is no key


async def test_items_of_a_revoked_key_cannot_be_decided(world: World) -> None:
    suspension, key = (await ask(world)).json(), await key_of(world)
    await revoke(world, key)
    found = await read(world, suspension["id"])
    assert found["status"] == "cancelled"
    assert found["end"]["error"] == f"Cancelled by desk: Key {key.id} of demo, which started the run, was revoked"
    decision = {"action": "approve", "digest": suspension["items"][0]["digest"]}
    answer = await post(world, "anna", f"{suspension['id']}/items/i1/decision", body=decision)
    assert answer.status_code == 409


async def test_namesake_cannot_redeem_permits_of_a_revoked_key(world: World) -> None:
    item, key = await approved(world), await key_of(world)
    await world.wiring.api_keys.revoke(key.id)  # nobody has swept yet
    await renew(world)
    await world.wiring.revocation_cache.find(fresh=True)
    spent = await post(world, "demo", f"{item}/redeem", "me-1")
    assert (spent.status_code, spent.json()["type"]) == (409, "/problems/withdrawn")
    assert key.id in spent.json()["detail"]


async def test_namesake_cannot_repeat_a_redemption(world: World) -> None:
    item, key = await approved(world), await key_of(world)
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).status_code == 200
    await world.wiring.api_keys.revoke(key.id)
    await renew(world)
    await world.wiring.revocation_cache.find(fresh=True)
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).json()["type"] == "/problems/withdrawn"


async def test_namesake_with_the_same_request_gets_the_withdrawn_one(world: World) -> None:
    suspension = (await ask(world, key="order-1")).json()
    await revoke(world, await key_of(world))
    await renew(world)
    again = (await ask(world, key="order-1")).json()
    assert (again["id"], again["status"]) == (suspension["id"], "cancelled")


async def test_revoked_reviewer_key_withdraws_only_its_own_runs(world: World) -> None:
    key, world.tokens["script"] = await world.wiring.api_keys.create("anna", kind="reviewer")
    ids = {}
    for who in ("anna", "script"):
        async with world.client(who) as client:
            started = (await client.post("/api/v1/runs", json={"agent": "demo", "input": "x"})).json()
            ids[who] = started["suspension_id"]
    await revoke(world, key)
    assert (await read(world, ids["script"]))["status"] == "cancelled"
    assert (await read(world, ids["anna"]))["status"] == "decided"


async def test_successor_of_a_rotated_key_continues_its_runs(world: World) -> None:
    waits, item, key = (await ask(world)).json(), await approved(world), await key_of(world)
    _, world.tokens["demo"] = await world.wiring.api_keys.rotate(key.id, 0)
    await Withdrawals(world.wiring, again_ms=0).sweep()
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).status_code == 200
    await decide(world, waits)
    assert (await post(world, "demo", f"{waits['id']}/items/i1/redeem", "me-2")).status_code == 200


async def test_revoking_the_successor_withdraws_runs_of_the_ended_key(world: World) -> None:
    item, key = await approved(world), await key_of(world)
    successor, _ = await world.wiring.api_keys.rotate(key.id, 0)
    await revoke(world, successor)
    assert (await read(world, item.partition("/")[0]))["status"] == "cancelled"


async def test_revoking_a_key_in_its_overlap_keeps_the_successors_runs(world: World) -> None:
    first, key = (await ask(world)).json(), await key_of(world)
    _, world.tokens["demo"] = await world.wiring.api_keys.rotate(key.id, 3600)
    second = (await ask(world)).json()
    await revoke(world, key)
    assert (await read(world, first["id"]))["status"] == "cancelled"
    assert (await read(world, second["id"]))["status"] == "pending"


async def test_clock_completes_an_interrupted_withdrawal(world: World) -> None:
    suspension, key = (await ask(world)).json(), await key_of(world)
    await world.wiring.api_keys.revoke(key.id)
    withdrawals = Withdrawals(world.wiring, again_ms=0)
    await withdrawals.sweep()
    assert (await read(world, suspension["id"]))["status"] == "cancelled"
    assert not (await key_of(world)).withdrawn
    await withdrawals.sweep()  # once more, for a request that was under way at the revocation
    assert (await key_of(world)).withdrawn


async def test_instance_outlives_its_provisioner(world: World) -> None:
    """The protocol ends an instance by its deletion; its credential is no part of the provisioner's key."""
    token = await make_provisioner(world.wiring)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "make"}
    async with world.client() as client:
        created = (await client.post("/api/aap/v1/instances", json={}, headers=headers)).json()
        await world.wiring.api_keys.revoke((await key_of(world, "platform")).id)
        own = {"Authorization": f"Bearer {created['credential']['token']}", "Idempotency-Key": "ask"}
        sent = {"tool": "refund", "arguments": {}, "timeout": "5m"}
        suspension = await client.post("/api/aap/v1/requests", json=sent, headers=own)
        assert suspension.status_code == 201, suspension.text
        assert (await client.get(f"/api/aap/v1/requests/{suspension.json()['id']}", headers=own)).status_code == 200
