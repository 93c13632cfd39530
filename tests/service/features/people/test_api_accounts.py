"""People manage their own password and sessions; admins manage those of others."""

from typing import Any

from httpx import AsyncClient, Response

from tests.builders import PASSWORD
from tests.service.worlds import World

NEW = "a much better battery"


async def sign_in(world: World, name: str = "anna", password: str = PASSWORD, client: str = "phone") -> Response:
    async with world.client() as nobody:
        sent = {"name": name, "password": password}
        return await nobody.post("/api/v1/sessions", json=sent, headers={"User-Agent": client})


async def let_in(world: World, who: str, client: str = "phone") -> None:
    """Sign anna in once more, as another client."""
    answer = await sign_in(world, client=client)
    assert answer.status_code == 201, answer.text
    world.tokens[who] = answer.json()["token"]


async def status_of(world: World, who: str) -> int:
    world.wiring.credentials.forget(world.tokens[who])
    async with world.client(who) as client:
        return (await client.get("/api/v1/runs")).status_code


async def change(client: AsyncClient, current: str = PASSWORD, password: str = NEW) -> Response:
    return await client.post("/api/v1/account/password", json={"current": current, "password": password})


async def sessions(client: AsyncClient, place: str = "account") -> list[dict[str, Any]]:
    answer = await client.get(f"/api/v1/{place}/sessions")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["sessions"]
    return found


async def test_reviewer_changes_own_password(world: World) -> None:
    await let_in(world, "phone")
    async with world.client("anna") as anna:
        changed = await change(anna)
    assert (changed.status_code, changed.json()["name"]) == (200, "anna")
    world.tokens["fresh"] = changed.json()["token"]
    assert [await status_of(world, who) for who in ("anna", "phone", "fresh")] == [401, 401, 200]
    assert (await sign_in(world)).status_code == 401
    assert (await sign_in(world, password=NEW)).status_code == 201


async def test_wrong_current_password_is_counted(world: World) -> None:
    async with world.client("anna") as anna:
        statuses = [(await change(anna, "a wrong password")).status_code for _ in range(11)]
        assert statuses == [*[403] * 10, 429]
    assert await status_of(world, "anna") == 200


async def test_new_password_must_differ_and_be_long_enough(world: World) -> None:
    async with world.client("anna") as anna:
        same = await change(anna, password=PASSWORD)
        short = await change(anna, password="short")
    assert (same.status_code, short.status_code) == (422, 422)
    assert await status_of(world, "anna") == 200


async def test_reviewer_key_is_no_session(world: World) -> None:
    _, world.tokens["script"] = await world.wiring.api_keys.create("anna", kind="reviewer")
    async with world.client("script") as script:
        assert (await change(script)).status_code == 403
        assert (await script.get("/api/v1/account/sessions")).status_code == 403


async def test_person_lists_and_ends_own_sessions(world: World) -> None:
    await let_in(world, "phone")
    await let_in(world, "laptop", client="laptop")
    async with world.client("anna") as anna, world.client("root") as root:
        found = await sessions(anna)
        assert {one["client"] for one in found} == {"", "phone", "laptop"}
        assert [one["client"] for one in found if one["current"]] == [""]
        assert all(one["address"] == "127.0.0.1" for one in found if one["client"])
        foreign = (await sessions(root))[0]["id"]
        assert (await anna.delete(f"/api/v1/account/sessions/{foreign}")).status_code == 404
        phone = next(one["id"] for one in found if one["client"] == "phone")
        assert (await anna.delete(f"/api/v1/account/sessions/{phone}")).status_code == 204
        assert [await status_of(world, who) for who in ("anna", "phone", "laptop")] == [200, 401, 200]
        assert (await anna.delete("/api/v1/account/sessions")).json() == {"ended": 1}
    assert [await status_of(world, who) for who in ("anna", "laptop", "root")] == [200, 401, 200]


async def test_session_lists_have_no_token_or_hash(world: World) -> None:
    await let_in(world, "phone")
    async with world.client("root") as root:
        text = str(await sessions(root, "reviewers/anna"))
    (hashes,) = [await world.wiring.reviewers._people._redis.zrange("sayso:{default}:sessions-of:anna", 0, -1)]
    assert world.tokens["phone"] not in text
    assert not [one for one in hashes if (one.decode() if isinstance(one, bytes) else str(one)) in text]


async def test_admin_lists_and_ends_sessions_of_others(world: World) -> None:
    await let_in(world, "phone")
    async with world.client("root") as root:
        phone = next(one["id"] for one in await sessions(root, "reviewers/anna") if one["client"] == "phone")
        assert (await root.delete(f"/api/v1/reviewers/anna/sessions/{phone}")).status_code == 204
        assert [await status_of(world, who) for who in ("anna", "phone")] == [200, 401]
        assert (await root.delete("/api/v1/reviewers/anna/sessions")).json() == {"ended": 1}
        assert await status_of(world, "anna") == 401
        assert (await root.get("/api/v1/reviewers/nobody/sessions")).status_code == 404
    assert (await sign_in(world)).status_code == 201


async def test_reactivated_person_signs_in_again(world: World) -> None:
    async with world.client("root") as root:
        await root.post("/api/v1/reviewers/anna/deactivate")
        assert await status_of(world, "anna") == 401
        back = await root.post("/api/v1/reviewers/anna/activate")
        assert (back.status_code, back.json()["active"]) == (200, True)
        assert (await root.post("/api/v1/reviewers/anna/activate")).json() == back.json()
        assert (await root.post("/api/v1/reviewers/nobody/activate")).status_code == 404
    assert await status_of(world, "anna") == 401, "no session from before holds again"
    assert (await sign_in(world)).status_code == 201
