"""Emergency rights: an hour, a typed reason, others informed at once, on every page and in the activity log."""

from typing import Any

import pytest
from httpx import AsyncClient

from sayso.core.clock import now_ms
from service.core.auth.roles import EMERGENCY
from service.core.store.directory import Emergency, EmergencyStore, Role
from service.features.break_glass import breaking
from service.features.webhooks.endpoints import register_sender
from tests.builders import make_person
from tests.channels import MemoryChannel
from tests.service.features.operate.test_api_channels import link, set_channel
from tests.service.worlds import World

REASON = "Payments are down, and no admin answers"
PATH = "/api/v1/break-glass"


@pytest.fixture
async def olga(world: World) -> World:
    """A world with an operator and an admin."""
    world.tokens["olga"] = await make_person(world.wiring, "olga", "operator")
    world.tokens["root"] = await make_person(world.wiring, "root", "reviewer", "admin")
    return world


async def take(client: AsyncClient, reason: str = REASON) -> dict[str, Any]:
    response = await client.post(PATH, json={"reason": reason})
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_operator_gets_rights_that_end_with_the_hour(olga: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with olga.client("olga") as client:
        assert (await client.get("/api/v1/activity")).status_code == 403
        taken = await take(client)
        assert (taken["person"], taken["reason"]) == ("olga", REASON)
        assert "root" in taken["informed"]
        assert len(taken["informed"]) >= breaking.FEWEST_INFORMED
        olga.wiring.credentials.forget(olga.tokens["olga"])
        assert (await client.get("/api/v1/activity")).status_code == 200
        (emergency,) = await olga.wiring.part(EmergencyStore).list_all()
        assert emergency.until_ms - emergency.at_ms == breaking.LASTS_MS
        later = emergency.until_ms
        monkeypatch.setattr("service.core.auth.roles.now_ms", lambda: later)
        olga.wiring.credentials.forget(olga.tokens["olga"])
        assert (await client.get("/api/v1/activity")).status_code == 403
        assert (await client.get(PATH)).json() == {"emergencies": []}


async def test_rights_give_nothing_that_lasts_longer(olga: World) -> None:
    assert EMERGENCY.isdisjoint({"manage_people", "manage_groups", "manage_keys", "grant", "erase"})
    async with olga.client("olga") as client:
        await take(client)
        olga.wiring.credentials.forget(olga.tokens["olga"])
        for path, body in (
            ("/reviewers", {"name": "eve", "password": "a long passphrase", "roles": ["admin"]}),
            ("/keys", {"name": "bot", "kind": "agent"}),
            ("/groups", {"name": "friends", "members": ["olga"]}),
        ):
            assert (await client.post(f"/api/v1{path}", json=body)).status_code == 403
        assert (await client.put("/api/v1/reviewers/olga/roles", json={"roles": ["admin"]})).status_code == 403


async def test_nobody_gives_others_their_emergency_rights(olga: World) -> None:
    """Neither as a role, nor as a secret that decides in the name of somebody else."""
    staff = Role(name="staff", permissions=("manage_people", "manage_webhooks", "break_glass"))
    admin = await olga.wiring.credentials.identify(olga.tokens["root"])
    await olga.wiring.roles.save(staff, admin.rights)
    made = (await register_sender(olga.wiring, admin, "pager", "anna")).sender.id
    olga.tokens["sam"] = await make_person(olga.wiring, "sam", "staff")
    async with olga.client("sam") as client:
        await take(client)
        olga.wiring.credentials.forget(olga.tokens["sam"])
        for path, body in (
            ("reviewers", {"name": "eve", "password": "a long passphrase", "roles": ["operator"]}),
            ("webhooks/senders", {"name": "mine", "reviewer": "anna"}),
            (f"webhooks/senders/{made}/rotate", {}),
        ):
            refused = await client.post(f"/api/v1/{path}", json=body)
            assert refused.status_code == 403, (path, refused.text)
        role = {"permissions": ["decide"]}
        assert (await client.put("/api/v1/roles/mine", json=role)).status_code == 403


@pytest.mark.parametrize(
    ("who", "reason", "status"),
    [
        ("olga", "help", 422),
        ("olga", " " * 40, 422),
        ("olga", "x" * 501, 422),
        ("anna", REASON, 403),
        ("demo", REASON, 403),
        ("root", REASON, 409),
    ],
)
async def test_refused_rights_change_nothing(olga: World, who: str, reason: str, status: int) -> None:
    async with olga.client(who) as client:
        assert (await client.post(PATH, json={"reason": reason})).status_code == status
    assert await olga.wiring.part(EmergencyStore).list_all() == []


async def test_rights_are_taken_once_and_ended_by_their_person_or_an_admin(olga: World) -> None:
    async with olga.client("olga") as client, olga.client("root") as root, olga.client("anna") as anna:
        await take(client)
        assert (await client.post(PATH, json={"reason": REASON})).status_code == 409
        assert (await anna.delete(f"{PATH}/olga")).status_code == 403
        assert (await client.delete(PATH)).status_code == 204
        assert (await client.delete(PATH)).status_code == 404
        await take(client)
        assert (await root.delete(f"{PATH}/olga")).status_code == 204
        olga.wiring.credentials.forget(olga.tokens["olga"])
        assert (await client.get("/api/v1/activity")).status_code == 403
        assert (await root.delete(f"{PATH}/olga")).status_code == 404


async def test_acts_are_marked_in_the_activity_log(olga: World) -> None:
    async with olga.client("olga") as client, olga.client("root") as root:
        await take(client)
        olga.wiring.credentials.forget(olga.tokens["olga"])
        frozen = await client.post("/api/v1/freezes", json={"scope": "all", "reason": "stop"})
        assert frozen.status_code == 201
        entries = (await root.get("/api/v1/activity")).json()["activity"]
        acts = {entry["act"]: entry for entry in entries if entry["by"] == "olga"}
        assert acts["emergency_begun"]["data"]["reason"] == REASON
        assert acts["frozen"]["data"]["emergency"] == "yes"


async def test_key_of_the_person_gets_no_emergency_rights(olga: World) -> None:
    _, key = await olga.wiring.api_keys.create("olga", kind="reviewer")
    olga.tokens["olga's key"] = key
    async with olga.client("olga") as client, olga.client("olga's key") as machine:
        await take(client)
        assert (await machine.post("/api/v1/freezes", json={"scope": "all", "reason": "stop"})).status_code == 403
        assert (await machine.post(PATH, json={"reason": REASON})).status_code == 403


async def test_all_admins_are_informed_and_others_until_they_are_two(olga: World) -> None:
    people = await olga.wiring.reviewers.list_all()
    assert breaking.choose_informed(people, "olga")[0] == "root"
    assert len(breaking.choose_informed(people, "olga")) == breaking.FEWEST_INFORMED
    alone = [person for person in people if person.name == "olga"]
    assert breaking.choose_informed(alone, "olga") == ()
    gone = [person.model_copy(update={"active": False}) for person in people]
    assert breaking.choose_informed(gone, "olga") == ()
    many = [people[0].model_copy(update={"name": f"admin{place}", "roles": ("admin",)}) for place in range(3)]
    assert breaking.choose_informed([*people, *many], "olga") == ("admin0", "admin1", "admin2", "root")


async def test_others_are_informed_over_their_channels_at_once(olga: World) -> None:
    channel = MemoryChannel(name="ops")
    set_channel(olga.app, channel)
    await link(olga, "root", "root-1")
    async with olga.client("olga") as client:
        await take(client)
    await olga.app.state.channels.notices.finish()
    assert channel.calls == [("send", "root-1")]
    assert channel.cards["root-1"].headline.startswith("olga has taken emergency rights on Sayso until")
    assert REASON in channel.cards["root-1"].headline


async def test_ended_rights_are_removed_with_the_next_end(olga: World) -> None:
    store = olga.wiring.part(EmergencyStore)
    at_ms = now_ms()
    await store.save(Emergency(person="ben", reason=REASON, at_ms=1, until_ms=at_ms - 1, informed=("root",)))
    async with olga.client("olga") as client:
        await take(client)
        assert (await client.get(PATH)).json()["emergencies"][0]["person"] == "olga"
        assert (await client.delete(PATH)).status_code == 204
    assert await store.list_all() == []
