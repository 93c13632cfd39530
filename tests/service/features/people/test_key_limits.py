"""Keys are narrowed to scopes, agents, networks and a time; a leaked one is revoked by how it begins."""

import re
from typing import Any

import pytest

from sayso.core.clock import iso_utc, now_ms
from sayso.errors import NotAllowed
from service.core.auth.credentials import SCOPES, require_network
from service.core.auth.doors import OPEN_OPERATIONS
from service.core.settings import Settings
from service.core.store.people import KeyTerms
from tests.builders import make_person
from tests.service.edge.api.test_access import OPERATIONS, ROWS
from tests.service.edge.api.test_execution import CALL
from tests.service.edge.web.sites import visit
from tests.service.edge.web.test_freezes import make_admin
from tests.service.worlds import World

ASK = {"mode": "poll", "calls": [CALL]}


async def make_key(world: World, **fields: Any) -> dict[str, Any]:
    """Return the new key of `bot`, whose secret the world keeps under its name."""
    async with world.client("root") as root:
        response = await root.post("/api/v1/keys", json={"name": "bot", **fields})
    assert response.status_code == 201, response.text
    key: dict[str, Any] = response.json()
    world.tokens["bot"] = key["key"]
    return key


async def get(world: World, path: str) -> int:
    async with world.client("bot") as bot:
        return (await bot.get(f"/api/v1/{path}")).status_code


async def post(world: World, path: str, body: dict[str, Any]) -> tuple[int, str]:
    async with world.client("bot") as bot:
        response = await bot.post(f"/api/v1/{path}", json=body)
    return response.status_code, response.json().get("detail", "")


def test_every_operation_of_an_agent_has_scopes() -> None:
    """A new operation needs a row, or keys with scopes could use it."""
    assert {*SCOPES} == {name for name, row in ROWS.items() if row.demo != 403 and name not in OPEN_OPERATIONS}


@pytest.mark.parametrize(
    ("scope", "reads", "asks", "webhooks"),
    [("read", 200, 403, 403), ("ask", 200, 201, 403), ("run", 200, 403, 403), ("webhooks", 403, 403, 200)],
)
async def test_key_does_only_what_its_scope_says(
    world: World, scope: str, reads: int, asks: int, webhooks: int
) -> None:
    await make_key(world, scopes=[scope])
    assert await get(world, "suspensions") == reads
    assert (await post(world, "suspensions", ASK))[0] == asks
    assert await get(world, "webhooks/endpoints") == webhooks


async def test_monitoring_key_reads_checks_and_metrics_and_nothing_else(world: World) -> None:
    """Every other operation refuses it, and no other key of an agent reads the checks."""
    await make_key(world, scopes=["monitor"])
    assert await get(world, "diagnostics") == 200
    async with world.client("bot") as bot:
        assert "sayso_store_up 1.0" in (await bot.get("/metrics")).text
        for name, (method, path, _operation) in OPERATIONS.items():
            if name not in OPEN_OPERATIONS and name != "getDiagnostics":
                row = ROWS[name]
                response = await bot.request(method, re.sub(r"{\w+}", "x", path), json=row.body)
                assert response.status_code == 403, (name, response.text)
    for scopes in ([], ["read"]):
        await make_key(world, scopes=scopes)
        assert await get(world, "diagnostics") == 403
        async with world.client("bot") as bot:
            assert (await bot.get("/metrics")).status_code == 404


async def test_refused_scope_names_what_is_needed(world: World) -> None:
    await make_key(world, scopes=["read"])
    status, detail = await post(world, "suspensions", ASK)
    assert (status, detail) == (
        403,
        "This key has the scope read; createSuspension needs ask. Use a key with that scope.",
    )


async def test_key_asks_only_as_its_agents(world: World) -> None:
    await make_key(world, agents=["billing"])
    calls = [{"tool": "refund", "args": {"order": "A-1", "amount": 5}}]
    for path, body in (("suspensions", {"calls": calls}), ("runs", {"input": "x"})):
        status, detail = await post(world, path, {**body, "agent": "demo"})
        assert (status, detail) == (403, "This key asks for billing only, not for 'demo'. Use that agent's own key.")
    assert (await post(world, "suspensions", ASK))[0] == 201  # as itself
    await make_key(world, agents=["billing", "demo"])
    assert (await post(world, "suspensions", {"calls": calls, "agent": "demo"}))[0] == 201


async def test_key_is_refused_from_another_network(world: World) -> None:
    """The refusal is in the activity log, with the address."""
    await make_key(world, networks=["192.0.2.0/24"])
    assert await get(world, "suspensions") == 403
    entry = (await world.wiring.activity.read_page(0, 10)).entries[0]
    assert (entry.act, entry.by, entry.outcome) == ("credential_used", "bot", "refused")
    await make_key(world, networks=["127.0.0.0/8"])
    assert await get(world, "suspensions") == 200


def test_mapped_addresses_count_as_what_they_map() -> None:
    terms = KeyTerms(networks=("10.0.0.0/8", "2001:db8::/32"))
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"):
        require_network(terms, address)
    for address in ("11.0.0.1", "::ffff:11.0.0.1", "2001:db9::1", "", "unix"):
        with pytest.raises(NotAllowed, match="cannot be used from"):
            require_network(terms, address)


async def test_expired_key_is_invalid_and_its_successor_lasts_as_long(world: World) -> None:
    hour_ms = 3_600_000
    key = await make_key(world, expires_at=iso_utc(now_ms() + hour_ms), scopes=["read"])
    assert await get(world, "suspensions") == 200
    async with world.client("root") as root:
        new = (await root.post(f"/api/v1/keys/{key['id']}/rotate")).json()
    stored = {one.id: one for one in await world.wiring.api_keys.list_all()}
    old, successor = stored[key["id"]], stored[new["id"]]
    assert old.expires_at_ms is not None
    assert successor.expires_at_ms is not None
    assert successor.expires_at_ms - successor.created_at_ms <= old.expires_at_ms - old.created_at_ms
    assert successor.scopes == ("read",)
    assert (old.holds(old.expires_at_ms - 1), old.holds(old.expires_at_ms)) == (True, False)


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"networks": ["10.0.0.1/8"]}, "Write it as a range"),
        ({"networks": ["office"]}, "Write it as a range"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "Choose a later time"),
        ({"kind": "provisioner", "scopes": ["read"]}, "Leave them out"),
    ],
)
async def test_terms_that_no_key_can_have_are_refused(world: World, fields: dict[str, Any], advice: str) -> None:
    async with world.client("root") as root:
        response = await root.post("/api/v1/keys", json={"name": "bot", **fields})
    assert (response.status_code, advice in response.json()["detail"]) == (422, True), response.text


async def test_leaked_key_is_revoked_by_how_it_begins(world: World) -> None:
    key = await make_key(world)
    assert key["key"].startswith(key["prefix"])
    async with world.client("root") as root:
        assert (await root.post(f"/api/v1/keys/{key['prefix'][:-1]}/revoke")).status_code == 404
        revoked = await root.post(f"/api/v1/keys/{key['prefix']}0000/revoke")
    assert (revoked.status_code, revoked.json()["id"]) == (200, key["id"])
    stored = {one.id: one for one in await world.wiring.api_keys.list_all()}
    assert stored[key["id"]].revoked_at_ms is not None


async def test_reviewer_revokes_no_foreign_key_by_its_prefix(world: World) -> None:
    await make_person(world.wiring, "ben")
    key = await make_key(world)
    async with world.client("anna") as anna:
        assert (await anna.post(f"/api/v1/keys/{key['prefix']}/revoke")).status_code == 404


async def test_page_makes_and_shows_a_narrow_key(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        form = {"name": "bot", "kind": "agent", "scope_ask": "on", "agents": "billing, <b>", "expires": "90"}
        await anna.send("/keys", 200, **form, networks="10.0.0.0/8 192.0.2.0/24")
        (key,) = await anna.wiring.api_keys.list_all()
        assert (key.scopes, key.agents, key.networks) == (
            ("ask",),
            ("billing", "<b>"),
            ("10.0.0.0/8", "192.0.2.0/24"),
        )
        page = await anna.read("/keys")
        for words in (
            "may only: send calls for approval",
            "only as billing, &lt;b&gt;",
            "only from 10.0.0.0/8",
            key.prefix,
        ):
            assert words in page, words
        refused = await anna.send("/keys", 422, **{**form, "networks": "office"})
        assert ('value="office"' in refused, 'name="scope_ask" checked' in refused) == (True, True)
