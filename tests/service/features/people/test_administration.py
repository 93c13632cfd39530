"""Reviewers and keys over HTTP: created once, listed without secrets, refused once deactivated."""

from typing import Any

import pytest

from service.core.settings.limits import TENANT
from service.core.store.people import ApiKey
from tests.builders import PASSWORD, make_pending, make_person
from tests.service.worlds import World


async def test_new_reviewer_signs_in_reads_and_signs_out(world: World) -> None:
    async with world.client("root") as root, world.client() as client:
        created = await root.post("/api/v1/reviewers", json={"name": "carla", "password": PASSWORD})
        opened = await client.post("/api/v1/sessions", json={"name": "carla", "password": PASSWORD})
        session = opened.json()
        client.headers["Authorization"] = f"Bearer {session['token']}"
        assert (await client.get("/api/v1/suspensions")).status_code == 200
        assert (await client.delete("/api/v1/sessions/current")).status_code == 204
        assert (await client.get("/api/v1/suspensions")).status_code == 401
    assert (created.status_code, created.json()["roles"], created.json()["active"]) == (201, ["reviewer"], True)
    assert (opened.status_code, session["name"], session["roles"]) == (201, "carla", ["reviewer"])
    assert session["expires_at"].endswith("Z")
    assert session["idle_timeout_s"] == 7200


async def test_answers_have_no_password_or_hash(world: World) -> None:
    async with world.client("root") as root:
        answers = [
            await root.post("/api/v1/reviewers", json={"name": "carla", "password": PASSWORD}),
            await root.post("/api/v1/reviewers", json={"name": "carla", "password": PASSWORD}),
            await root.post("/api/v1/reviewers", json={"name": "!", "password": PASSWORD}),
            await root.post("/api/v1/reviewers", json={"name": 7, "password": PASSWORD, "x": PASSWORD}),
            await root.post("/api/v1/sessions", json={"name": "carla", "password": PASSWORD * 100}),
            await root.get("/api/v1/reviewers"),
            await root.get("/api/v1/keys"),
        ]
    assert [answer.status_code for answer in answers] == [201, 409, 422, 422, 422, 200, 200]
    assert not [answer.text for answer in answers if PASSWORD in answer.text or "argon2" in answer.text]


async def test_repeated_request_adds_one_reviewer(world: World) -> None:
    key = {"Idempotency-Key": "k"}
    carla = {"name": "carla", "password": PASSWORD, "roles": ["reviewer", "admin"]}
    async with world.client("root") as root:
        first = await root.post("/api/v1/reviewers", json=carla, headers=key)
        again = await root.post("/api/v1/reviewers", json=carla, headers=key)
        other = await root.post("/api/v1/reviewers", json={**carla, "name": "dora"}, headers=key)
        named = [one["name"] for one in (await root.get("/api/v1/reviewers")).json()["reviewers"]]
    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 409)
    assert first.json() == again.json()
    assert named == ["anna", "carla", "root"]


async def test_refused_request_does_not_use_its_key(world: World) -> None:
    async with world.client("root") as root:
        for _ in range(2):
            taken = {"name": "anna", "password": PASSWORD}
            answer = await root.post("/api/v1/reviewers", json=taken, headers={"Idempotency-Key": "k"})
            assert answer.status_code == 409


async def test_new_key_is_shown_once_and_works_until_revoked(world: World) -> None:
    sent: dict[str, Any] = {"json": {"name": "support-bot"}, "headers": {"Idempotency-Key": "k"}}
    async with world.client("root") as root, world.client() as bot:
        created = (await root.post("/api/v1/keys", **sent)).json()
        again = (await root.post("/api/v1/keys", **sent)).json()
        bot.headers["Authorization"] = f"Bearer {created['key']}"
        assert (await bot.get("/api/v1/runs")).status_code == 200
        revoked = (await root.post(f"/api/v1/keys/{created['id']}/revoke")).json()
        assert (await root.post(f"/api/v1/keys/{created['id']}/revoke")).json() == revoked
        world.wiring.credentials.forget(created["key"])
        assert (await bot.get("/api/v1/runs")).status_code == 401
        listed = (await root.get("/api/v1/keys")).json()["keys"]
    assert created["key"].startswith("sayso_agent_")
    assert again == {**created, "key": None}
    assert revoked["revoked_at"].endswith("Z")
    assert [one["name"] for one in listed] == ["demo", "other", "support-bot"]
    assert "key" not in listed[0]


async def test_deactivated_reviewer_is_refused_immediately(world: World) -> None:
    async with world.client("root") as root, world.client("anna") as anna, world.client() as nobody:
        out = await root.post("/api/v1/reviewers/anna/deactivate")
        world.wiring.credentials.forget(world.tokens["anna"])
        assert (await anna.get("/api/v1/runs")).status_code == 401
        assert (await nobody.post("/api/v1/sessions", json={"name": "anna", "password": PASSWORD})).status_code == 401
    assert (out.status_code, out.json()["active"]) == (200, False)


async def test_new_password_ends_old_sessions(world: World) -> None:
    async with world.client("root") as root, world.client("anna") as anna, world.client() as nobody:
        changed = await root.post("/api/v1/reviewers/anna/password", json={"password": "another battery"})
        world.wiring.credentials.forget(world.tokens["anna"])
        old = await nobody.post("/api/v1/sessions", json={"name": "anna", "password": PASSWORD})
        new = await nobody.post("/api/v1/sessions", json={"name": "anna", "password": "another battery"})
        assert (await anna.get("/api/v1/runs")).status_code == 401
    assert (changed.status_code, old.status_code, new.status_code) == (204, 401, 201)


async def test_admin_cannot_deactivate_themselves(world: World) -> None:
    async with world.client("root") as root:
        assert (await root.post("/api/v1/reviewers/root/deactivate")).status_code == 409


@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/v1/keys", {"name": "anna"}), ("/api/v1/reviewers", {"name": "demo", "password": PASSWORD})],
)
async def test_agents_and_people_have_different_names(world: World, path: str, body: dict[str, str]) -> None:
    async with world.client("root") as root:
        answer = await root.post(path, json=body)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/conflict")


@pytest.mark.parametrize("kind", ["agent", "provisioner"])
@pytest.mark.parametrize(
    "name", ["webhook", "Webhook", "policy", "timeout", "desk", "sayso", "aap:0b9f", "AAP:x", "aap/shop", "aap-scope:x"]
)
async def test_key_cannot_have_a_reserved_name(world: World, name: str, kind: str) -> None:
    async with world.client("root") as root:
        answer = await root.post("/api/v1/keys", json={"name": name, "kind": kind})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-input")
    assert "Choose another name." in answer.json()["detail"]


async def test_reviewer_cannot_be_named_webhook(world: World) -> None:
    async with world.client("root") as root:
        answer = await root.post("/api/v1/reviewers", json={"name": "webhook", "password": PASSWORD})
    assert answer.status_code == 422


@pytest.mark.parametrize("name", ["Anna", "ANNA", "\u0430nna"])
async def test_agent_cannot_have_a_name_like_a_persons(world: World, name: str) -> None:
    async with world.client("root") as root:
        answer = await root.post("/api/v1/keys", json={"name": name})
    assert answer.status_code in (409, 422)


async def test_key_with_a_formerly_allowed_name_can_be_rotated(world: World) -> None:
    key = ApiKey(id="key_old", tenant=TENANT, name="webhook", created_at_ms=1)
    await world.wiring.api_keys._people.save_key("0" * 64, key)
    async with world.client("root") as root:
        assert (await root.post("/api/v1/keys/key_old/rotate")).status_code == 201


async def test_password_guesses_are_limited_until_a_right_one(world: World) -> None:
    right, wrong = ({"name": "anna", "password": password} for password in (PASSWORD, "a wrong password"))
    async with world.client() as client:
        for _ in range(9):
            assert (await client.post("/api/v1/sessions", json=wrong)).status_code == 401
        assert (await client.post("/api/v1/sessions", json=right)).status_code == 201
        for _ in range(10):
            assert (await client.post("/api/v1/sessions", json=wrong)).status_code == 401
        stopped = await client.post("/api/v1/sessions", json=right)
        assert (stopped.status_code, stopped.json()["type"]) == (429, "/problems/too-many-requests")
        assert 0 < int(stopped.headers["Retry-After"]) <= 60
        await make_person(world.wiring, "ben")
        other = {"name": "ben", "password": PASSWORD}
        assert (await client.post("/api/v1/sessions", json=other)).status_code == 201


async def test_unknown_name_is_answered_like_a_wrong_password(world: World) -> None:
    async with world.client() as client:
        unknown = await client.post("/api/v1/sessions", json={"name": "nobody", "password": PASSWORD})
        wrong = await client.post("/api/v1/sessions", json={"name": "anna", "password": "a wrong password"})
    assert (unknown.status_code, unknown.json()) == (401, wrong.json())


async def test_rotated_key_is_valid_until_the_overlap_ends(world: World) -> None:
    async with world.client("root") as root:
        created = (await root.post("/api/v1/keys", json={"name": "bot"})).json()
        kept = (await root.post(f"/api/v1/keys/{created['id']}/rotate", json={"overlap_s": 600})).json()
        world.tokens |= {"first": created["key"], "second": kept["key"]}
        for who in ("first", "second"):
            async with world.client(who) as client:
                assert (await client.get("/api/v1/runs")).status_code == 200
        last = (await root.post(f"/api/v1/keys/{kept['id']}/rotate", json={"overlap_s": 0})).json()
        known = {one["id"]: one for one in (await root.get("/api/v1/keys")).json()["keys"]}
        assert known[created["id"]]["ends_at"] is not None
        assert known[last["id"]]["ends_at"] is None
        world.wiring.credentials.forget(kept["key"])
        async with world.client("second") as client:
            assert (await client.get("/api/v1/runs")).status_code == 401
        assert (await root.post(f"/api/v1/keys/{kept['id']}/rotate")).status_code == 409


async def test_reviewer_key_decides_but_has_no_admin_rights(world: World) -> None:
    async with world.client("root") as root:
        admins = (await root.post("/api/v1/keys", json={"name": "root", "kind": "reviewer"})).json()
    async with world.client("anna") as anna:
        created = (await anna.post("/api/v1/keys", json={"name": "anna", "kind": "reviewer"})).json()
        assert created["key"].startswith("sayso_reviewer_")
    world.tokens |= {"anna's": created["key"], "root's": admins["key"]}
    pending = await make_pending(world.wiring)
    async with world.client("anna's") as client:
        decision = {"action": "approve", "digest": pending.items[0].digest}
        decided = (await client.post(f"/api/v1/suspensions/{pending.id}/items/i1/decision", json=decision)).json()
        assert decided["outcome"]["by"]["id"] == "anna"
    async with world.client("root's") as client:
        assert (await client.get("/api/v1/keys")).status_code == 403
    async with world.client("root") as root:
        await root.post("/api/v1/reviewers/anna/deactivate")
    world.wiring.credentials.forget(created["key"])
    async with world.client("anna's") as client:
        assert (await client.get("/api/v1/runs")).status_code == 401


async def test_provisioner_key_cannot_ask_or_read(world: World) -> None:
    async with world.client("root") as root:
        created = (await root.post("/api/v1/keys", json={"name": "fleet", "kind": "provisioner"})).json()
    world.tokens["fleet"] = created["key"]
    async with world.client("fleet") as client:
        assert (await client.get("/api/v1/runs")).status_code == 401
