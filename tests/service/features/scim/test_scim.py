"""SCIM: what a directory adds, changes and takes away, and that everything it takes away ends at once."""

import asyncio
from typing import Any

import httpx2
import pytest
from httpx import AsyncClient
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

from sayso.core.records.terms import Quorum, RuleTerms
from service.assembly import assemble
from service.core.auth.roles import find_rights
from service.core.settings import Settings
from tests.builders import PASSWORD, ask, make_pending
from tests.service.servers import served
from tests.service.worlds import World

USERS, GROUPS = "/scim/v2/Users", "/scim/v2/Groups"
_USER, _GROUP = (f"urn:ietf:params:scim:schemas:core:2.0:{kind}" for kind in ("User", "Group"))
_PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


async def make_directory(world: World, name: str = "okta") -> AsyncClient:
    """Return a client with the key of a directory."""
    _, world.tokens[name] = await world.wiring.api_keys.create(name, kind="directory")
    return world.client(name)


def user(user_name: str, **further: Any) -> dict[str, Any]:
    return {"schemas": [_USER], "userName": user_name, **further}


def group(name: str, *members: str) -> dict[str, Any]:
    return {"schemas": [_GROUP], "displayName": name, "members": [{"value": member} for member in members]}


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"schemas": [_PATCH], "Operations": [*operations]}


async def add(client: AsyncClient, name: str, **further: Any) -> str:
    answer = await client.post(USERS, json=user(name, **further))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_added_user_is_a_reviewer_without_a_password(world: World) -> None:
    async with await make_directory(world) as okta, world.client() as stranger:
        answer = await okta.post(USERS, json=user("Carla@Example.com", title="Head", name={"givenName": "Carla"}))
        signed_in = await stranger.post("/api/v1/sessions", json={"name": "carla@example.com", "password": ""})
        guessed = await stranger.post("/api/v1/sessions", json={"name": "carla@example.com", "password": PASSWORD})
    shown, person = answer.json(), await world.wiring.reviewers.find("carla@example.com")
    assert person is not None
    assert (person.active, person.roles, person.managed_by) == (True, ("reviewer",), "directory")
    assert (shown["userName"], shown["active"], shown["name"]) == ("Carla@Example.com", True, {"givenName": "Carla"})
    assert "title" not in shown
    assert answer.headers["location"] == f"http://127.0.0.1:8321{USERS}/{shown['id']}"
    assert (signed_in.status_code, guessed.status_code) == (422, 401)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "active", "value": False},
        {"op": "Replace", "path": "active", "value": "False"},
        {"op": "replace", "value": {"active": False}},
    ],
    ids=["path", "Entra", "value"],
)
async def test_deactivation_ends_sessions_keys_and_votes(world: World, operation: dict[str, Any]) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla")
        await world.wiring.reviewers.set_password("carla", PASSWORD)
        opened = await world.wiring.reviewers.sign_in("carla", PASSWORD)
        world.tokens["carla"] = opened.token
        record = await make_pending(world.wiring, ask(terms=RuleTerms(quorum=Quorum(approve=2))))
        async with world.client("carla") as person:
            decided = await person.post(
                f"/api/v1/suspensions/{record.id}/items/{record.items[0].item_id}/decision",
                json={"action": "approve", "digest": record.items[0].digest},
            )
            ended = await okta.patch(f"{USERS}/{carla}", json=patch(operation))
            world.wiring.credentials.forget(opened.token)
            refused = await person.get("/api/v1/suspensions")
        shown = await okta.get(f"{USERS}/{carla}")
    after = (await world.wiring.desk.suspensions.read(record.id)).record
    assert decided.status_code == 200, decided.text
    assert ended.status_code in (200, 204), ended.text
    assert refused.status_code == 401
    assert shown.json()["active"] is False
    assert after.items[0].decisions == ()


async def test_reactivated_user_is_active_again(world: World) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla", active=False)
        inactive = await world.wiring.reviewers.find("carla")
        await okta.put(f"{USERS}/{carla}", json=user("carla", active=True))
    active = await world.wiring.reviewers.find("carla")
    assert (inactive and inactive.active, active and active.active) == (False, True)


async def test_deleted_user_is_deactivated_and_leaves_groups(world: World) -> None:
    async with await make_directory(world) as okta:
        carla, dora = await add(okta, "carla"), await add(okta, "dora")
        team = (await okta.post(GROUPS, json=group("Payments Team", carla, dora))).json()["id"]
        deleted = await okta.delete(f"{USERS}/{carla}")
        again = await okta.get(f"{USERS}/{carla}")
        left_members = (await okta.get(f"{GROUPS}/{team}")).json()["members"]
        back = await okta.post(USERS, json=user("carla"))
    person = await world.wiring.reviewers.find("carla")
    assert (deleted.status_code, again.status_code, back.status_code) == (204, 404, 201)
    assert [member["value"] for member in left_members] == [dora]
    assert (await world.wiring.groups.read("payments-team")).members == ("dora",)
    assert person is not None
    assert person.active


async def test_group_follows_the_directory_and_keeps_those_added_by_hand(world: World) -> None:
    async with await make_directory(world) as okta:
        carla, dora = await add(okta, "carla"), await add(okta, "dora", active=False)
        created = await okta.post(GROUPS, json=group("Payments", carla))
        team = created.json()["id"]
        await world.wiring.groups.update("payments", ("anna", "carla"), (), "root", find_rights(["admin"], {}))
        added = {"op": "add", "path": "members", "value": [{"value": dora}]}
        removed = {"op": "remove", "path": f'members[value eq "{carla}"]'}
        changed = await okta.patch(f"{GROUPS}/{team}", json=patch(added, removed))
        members = (await world.wiring.groups.read("payments")).members
        deleted = await okta.delete(f"{GROUPS}/{team}")
        names = [known.name for known in await world.wiring.groups.list_all()]
    assert created.status_code == 201, created.text
    assert changed.status_code in (200, 204), changed.text
    assert members == ("anna", "dora")
    assert (deleted.status_code, names) == (204, [])


async def test_people_and_groups_made_by_hand_are_neither_shown_nor_taken_over(world: World) -> None:
    await world.wiring.groups.create("payments", ("anna",), (), "root")
    async with await make_directory(world) as okta:
        listed = await okta.get(USERS)
        person = await okta.post(USERS, json=user("Root"))
        team = await okta.post(GROUPS, json=group("Payments"))
        agent = await okta.post(USERS, json=user("demo"))
    assert listed.json()["totalResults"] == 0
    assert [answer.status_code for answer in (person, team, agent)] == [409, 409, 409]
    assert "a person named root that is not from the directory" in person.json()["detail"]
    root = await world.wiring.reviewers.find("root")
    assert root is not None
    assert (root.roles, root.managed_by) == (("reviewer", "admin"), "")


@pytest.mark.parametrize("label", ["", "a b", "x" * 65, "clock", "../etc", "naïve"])
async def test_name_that_cannot_be_one_in_sayso_is_refused_and_adds_nobody(world: World, label: str) -> None:
    before = len(await world.wiring.reviewers.list_all())
    async with await make_directory(world) as okta:
        answer = await okta.post(USERS, json=user(label))
        assert (await okta.get(USERS)).json()["totalResults"] == 0
    assert answer.status_code in (400, 422)
    assert len(await world.wiring.reviewers.list_all()) == before


async def test_renamed_user_is_the_same_person_and_can_be_deactivated(world: World) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla")
        answer = await okta.put(f"{USERS}/{carla}", json=user("carla.new", active=False))
        other = await okta.post(USERS, json=user("carla"))
    person = await world.wiring.reviewers.find("carla")
    assert (answer.status_code, answer.json()["userName"]) == (200, "carla.new")
    assert person is not None
    assert not person.active
    assert await world.wiring.reviewers.find("carla.new") is None
    assert other.status_code == 409


async def test_last_admin_stays(world: World) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla")
        await world.wiring.reviewers.deactivate("anna")
        await world.wiring.reviewers._change("carla", lambda: {"roles": ("reviewer", "admin")})
        await world.wiring.reviewers.deactivate("root")
        answer = await okta.delete(f"{USERS}/{carla}")
    person = await world.wiring.reviewers.find("carla")
    assert answer.status_code == 409
    assert "last active admin" in answer.json()["detail"]
    assert person is not None
    assert person.active


async def test_users_are_found_by_name_filter_and_page(world: World) -> None:
    async with await make_directory(world) as okta:
        for name in ("carla", "dora", "emil"):
            await add(okta, name, displayName=name.title())

        async def find(query: str) -> tuple[int, list[str]]:
            answer = (await okta.get(f"{USERS}?{query}")).json()
            return answer["totalResults"], [entry["userName"] for entry in answer.get("Resources", [])]

        assert await find('filter=userName eq "Dora"') == (1, ["dora"])
        assert await find('filter=userName eq "nobody"') == (0, [])
        assert await find('filter=displayName sw "E" or userName eq "carla"') == (2, ["carla", "emil"])
        assert await find("startIndex=2&count=1&sortBy=userName") == (3, ["dora"])
        refused = await okta.get(f"{USERS}?filter=userName eq")
    assert (refused.status_code, refused.json()["scimType"]) == (400, "invalidFilter")


async def test_change_of_an_older_version_is_refused(world: World) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla")
        etag = (await okta.get(f"{USERS}/{carla}")).headers["etag"]
        first = await okta.put(f"{USERS}/{carla}", json=user("carla", displayName="C"), headers={"If-Match": etag})
        second = await okta.put(f"{USERS}/{carla}", json=user("carla", active=False), headers={"If-Match": etag})
    assert (first.status_code, second.status_code) == (200, 412)


async def test_change_beside_a_deactivation_activates_nobody(world: World) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla")
        renamed = patch({"op": "replace", "path": "displayName", "value": "C"})
        ended = patch({"op": "replace", "path": "active", "value": False})
        answers = await asyncio.gather(
            *(okta.patch(f"{USERS}/{carla}", json=body) for body in (renamed, ended, renamed, ended, renamed))
        )
        while answers[1].status_code == 412 and answers[3].status_code == 412:  # as a directory does
            answers[1] = await okta.patch(f"{USERS}/{carla}", json=ended)
    person = await world.wiring.reviewers.find("carla")
    assert {answer.status_code for answer in answers} <= {200, 204, 412}
    assert person is not None
    assert not person.active


async def test_replacement_without_active_leaves_it_as_it_is(world: World) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla", active=False)
        answer = await okta.put(f"{USERS}/{carla}", json=user("carla", displayName="C"))
    assert (answer.status_code, answer.json()["active"]) == (200, False)


async def test_members_set_at_the_same_time_are_those_of_the_last_version(world: World) -> None:
    async with await make_directory(world) as okta:
        ids = [await add(okta, name) for name in ("carla", "dora", "emil")]
        team = (await okta.post(GROUPS, json=group("Payments"))).json()["id"]
        await asyncio.gather(*(okta.put(f"{GROUPS}/{team}", json=group("Payments", member)) for member in ids))
        kept = [member["value"] for member in (await okta.get(f"{GROUPS}/{team}")).json()["members"]]
    names = dict(zip(ids, ("carla", "dora", "emil"), strict=True))
    assert (await world.wiring.groups.read("payments")).members == tuple(names[member] for member in kept)


async def test_two_requests_for_one_name_add_one_user(world: World) -> None:
    async with await make_directory(world) as okta:
        answers = await asyncio.gather(*(okta.post(USERS, json=user("carla")) for _ in range(5)))
        listed = await okta.get(USERS)
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    assert listed.json()["totalResults"] == 1


@pytest.mark.parametrize("who", [None, "demo", "anna", "root", "plat"])
async def test_other_credentials_keep_no_directory(world: World, who: str | None) -> None:
    _, world.tokens["plat"] = await world.wiring.api_keys.create("plat", kind="provisioner")
    async with world.client(who) as client:
        answers = [await client.get(USERS), await client.post(USERS, json=user("carla"))]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert answers[0].headers["content-type"] == "application/scim+json"
    assert await world.wiring.reviewers.find("carla") is None


async def test_key_of_a_directory_does_nothing_else(world: World) -> None:
    async with await make_directory(world) as okta:
        paths = ("/api/v1/suspensions", "/api/v1/reviewers", "/api/v1/runs", "/api/v1/history")
        assert {(await okta.get(path)).status_code for path in paths} == {401}


async def test_what_a_directory_does_is_in_the_activity_log(world: World) -> None:
    async with await make_directory(world) as okta:
        carla = await add(okta, "carla")
        await okta.patch(f"{USERS}/{carla}", json=patch({"op": "replace", "path": "active", "value": False}))
        await okta.post(GROUPS, json=group("Payments", carla))
    page = await world.wiring.activity.read_page(0, 50)
    acts = [(entry.act, entry.by, entry.door, entry.target) for entry in page.entries if entry.door == "scim"]
    assert acts[::-1] == [
        ("person_added", "okta", "scim", "carla"),
        ("person_deactivated", "okta", "scim", "carla"),
        ("group_created", "okta", "scim", "payments"),
    ]


def test_service_conforms_to_the_specification(settings: Settings) -> None:
    with served(settings) as address, httpx2.Client(base_url=f"{address}/scim/v2") as client:
        client.headers["Authorization"] = f"Bearer {asyncio.run(_make_key(settings))}"
        results = check_server(SyncSCIMClient(client))
    bad = [result for result in results if result.status in (Status.ERROR, Status.CRITICAL)]
    assert len(results) > 50
    # A person is always active or not, so nothing is left when `active` is removed.
    assert {result.reason for result in bad} == {"Attribute 'active' was not removed"}


async def _make_key(settings: Settings) -> str:
    async with assemble(settings) as wiring:
        return (await wiring.api_keys.create("okta", kind="directory"))[1]
