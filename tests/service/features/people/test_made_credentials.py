"""One human is one vote: a credential that another person made or reset counts as theirs and notifies its person."""

from typing import Any

import pytest
from httpx import Response

from sayso.core.clock import now_ms
from sayso.core.records.decisions import Delegate
from sayso.core.records.terms import Quorum, RuleTerms
from tests.builders import PASSWORD, ask, make_pending, make_person
from tests.service.edge.api.test_execution import post
from tests.service.worlds import World
from tests.waits import until

RESET = "a sentence that root chose"
OWN = "a sentence of ben alone"


@pytest.fixture
async def two(world: World) -> World:
    """A desk where `pay` needs two people: root, who is an admin, and ben."""
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    return world


async def ask_two(world: World) -> dict[str, Any]:
    """Ask about a call that needs two people."""
    record = await make_pending(world.wiring, ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    async with world.client("anna") as anna:
        found: dict[str, Any] = (await anna.get(f"/api/v1/suspensions/{record.id}")).json()
    return found


async def decide(world: World, who: str, suspension: dict[str, Any]) -> Response:
    decision = {"action": "approve", "digest": suspension["items"][0]["digest"]}
    return await post(world, who, f"{suspension['id']}/items/i1/decision", body=decision)


async def reset(world: World, name: str = "ben", password: str = RESET) -> None:
    async with world.client("root") as root:
        answer = await root.post(f"/api/v1/reviewers/{name}/password", json={"password": password})
        assert answer.status_code == 204


async def sign_in(world: World, name: str, password: str) -> dict[str, Any]:
    async with world.client() as client:
        answer = await client.post("/api/v1/sessions", json={"name": name, "password": password})
    assert answer.status_code == 201, answer.text
    opened: dict[str, Any] = answer.json()
    world.tokens[name] = opened["token"]
    return opened


async def change_own(world: World, name: str, current: str, password: str) -> None:
    async with world.client(name) as client:
        answer = await client.post("/api/v1/account/password", json={"current": current, "password": password})
        assert answer.status_code == 200, answer.text
        world.tokens[name] = answer.json()["token"]


async def test_admin_cannot_make_a_reviewer_key_in_another_name(two: World) -> None:
    async with two.client("root") as root:
        refused = await root.post("/api/v1/keys", json={"name": "ben", "kind": "reviewer"})
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/not-allowed")
    assert "Only ben" in refused.json()["detail"]
    async with two.client("ben") as ben:
        made = (await ben.post("/api/v1/keys", json={"name": "ben", "kind": "reviewer"})).json()
        assert (made["name"], made["created_by"]) == ("ben", "ben")
        assert [one["id"] for one in (await ben.get("/api/v1/keys")).json()["keys"]] == [made["id"]]
        assert (await ben.post("/api/v1/keys", json={"name": "crm"})).status_code == 403


async def test_admin_cannot_rotate_the_reviewer_key_of_another(two: World) -> None:
    made, _ = await two.wiring.api_keys.create("ben", kind="reviewer", by="ben")
    async with two.client("root") as root:
        assert (await root.post(f"/api/v1/keys/{made.id}/rotate")).status_code == 403
        assert (await root.post(f"/api/v1/keys/{made.id}/revoke")).status_code == 200


async def test_person_does_not_revoke_keys_of_others(two: World) -> None:
    made, _ = await two.wiring.api_keys.create("anna", kind="reviewer", by="anna")
    async with two.client("ben") as ben:
        assert (await ben.post(f"/api/v1/keys/{made.id}/revoke")).status_code == 404


async def test_reviewer_key_makes_no_keys(two: World) -> None:
    _, two.tokens["ben's key"] = await two.wiring.api_keys.create("ben", kind="reviewer", by="ben")
    async with two.client("ben's key") as key:
        assert (await key.post("/api/v1/keys", json={"name": "ben", "kind": "reviewer"})).status_code == 403


@pytest.mark.parametrize("first", ["root", "ben"])
async def test_admin_who_reset_a_password_has_one_vote(two: World, first: str) -> None:
    suspension = await ask_two(two)
    await reset(two)
    assert (await sign_in(two, "ben", RESET))["password_by"] == "root"
    second = {"root": "ben", "ben": "root"}[first]
    assert (await decide(two, first, suspension)).json()["status"] == "pending"
    refused = await decide(two, second, suspension)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/already-decided")
    assert "root made or reset the credential of ben" in refused.json()["detail"]
    assert (await decide(two, "anna", suspension)).json()["status"] == "decided"


async def test_vote_by_a_reset_password_says_whose_it_is(two: World) -> None:
    suspension = await ask_two(two)
    await reset(two)
    await sign_in(two, "ben", RESET)
    await decide(two, "ben", suspension)
    async with two.client("anna") as anna:
        item = (await anna.get(f"/api/v1/suspensions/{suspension['id']}")).json()["items"][0]
    assert item["decisions"][0]["by"]["counts_as"] == "root"
    trail = await two.wiring.runs.trail(suspension["run"]["id"])
    assert trail[-1].data["by"]["counts_as"] == "root"


async def test_reset_before_the_item_counts_until_the_person_changes_it(two: World) -> None:
    await reset(two)
    suspension = await ask_two(two)
    await sign_in(two, "ben", RESET)
    await decide(two, "root", suspension)
    assert (await decide(two, "ben", suspension)).status_code == 409
    await change_own(two, "ben", RESET, OWN)
    assert (await decide(two, "ben", suspension)).json()["status"] == "decided"


async def test_changed_password_still_counts_for_items_from_before_the_reset(two: World) -> None:
    suspension = await ask_two(two)
    await reset(two)
    await sign_in(two, "ben", RESET)
    await change_own(two, "ben", RESET, OWN)
    await decide(two, "root", suspension)
    assert (await decide(two, "ben", suspension)).status_code == 409


async def test_key_made_after_a_reset_counts_for_older_items(two: World) -> None:
    suspension = await ask_two(two)
    await reset(two)
    await sign_in(two, "ben", RESET)
    async with two.client("ben") as ben:
        refused = await ben.post("/api/v1/keys", json={"name": "ben", "kind": "reviewer"})
        assert "root set your password" in refused.json()["detail"]
        assert (await ben.post("/api/v1/account/contacts/codes", json={"channel": "slack"})).status_code == 403
    await change_own(two, "ben", RESET, OWN)
    async with two.client("ben") as ben:
        two.tokens["ben's key"] = (await ben.post("/api/v1/keys", json={"name": "ben", "kind": "reviewer"})).json()[
            "key"
        ]
        code = (await ben.post("/api/v1/account/contacts/codes", json={"channel": "slack"})).json()["code"]
    await two.wiring.contacts.redeem_code("slack", code, "U1")
    await decide(two, "root", suspension)
    assert (await decide(two, "ben's key", suspension)).status_code == 409
    by = await two.wiring.reviewers.find_actor("ben", "slack", await two.wiring.contacts.find_made("slack", "U1"))
    assert isinstance(by, Delegate)
    assert by.made_by == "root"


async def test_first_password_counts_for_later_items_as_its_persons(two: World) -> None:
    async with two.client("root") as root:
        await root.post("/api/v1/reviewers", json={"name": "carl", "password": RESET})
    made_ms = now_ms()

    async def is_later() -> bool:
        return await two.wiring.schedule.now_ms() > made_ms + 20

    await until(is_later)  # an item of that time by the clock of the store counts as an earlier one
    suspension = await ask_two(two)
    assert (await sign_in(two, "carl", RESET))["password_by"] == "root"
    await decide(two, "root", suspension)
    answer = await decide(two, "carl", suspension)
    assert answer.json()["status"] == "decided", answer.text


async def test_person_who_resets_their_own_password_is_not_marked(two: World) -> None:
    await reset(two, "root", OWN)
    assert (await sign_in(two, "root", OWN))["password_by"] == ""


@pytest.mark.parametrize("password", ["password", "Password1!", "sayso2026", "12345678", "ben-2026", "ben", "aaaaaaaa"])
async def test_obvious_password_is_refused(two: World, password: str) -> None:
    async with two.client("root") as root:
        refused = await root.post("/api/v1/reviewers/ben/password", json={"password": password})
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/invalid-input")
    assert await two.wiring.reviewers.has_password("ben", PASSWORD)
