"""Roles: who gives which, what they let a person do, and that an auditor alone decides nothing."""

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.errors import Conflict, InvalidInput, NotAllowed
from service.core.auth.credentials import Principal
from service.core.auth.roles import ALL, PERMISSIONS, ROLES, find_rights
from service.core.operations.people import add_reviewer, check_rank, set_roles
from tests.builders import PASSWORD, make_pending, make_person
from tests.service.worlds import World


async def find_principal(world: World, name: str, *roles: str) -> Principal:
    return await world.wiring.credentials.identify(await make_person(world.wiring, name, *roles))


def test_each_permission_is_described_and_held_by_an_admin() -> None:
    assert {*PERMISSIONS} == ALL == ROLES["admin"]


def test_two_roles_let_a_person_do_what_either_lets() -> None:
    both = find_rights(("auditor", "operator"), {})
    assert both.has("read_activity")
    assert both.has("freeze")
    assert not both.has("decide")


def test_unknown_role_lets_a_person_do_nothing_but_care_for_their_account() -> None:
    rights = find_rights(("boss",), {})
    assert rights.granted == {}
    assert rights.has("account")


@pytest.mark.parametrize("role", ["auditor", "operator", "rule_author"])
async def test_person_without_decide_decides_over_no_channel(world: World, role: str) -> None:
    await make_person(world.wiring, "otto", role)
    pending = await make_pending(world.wiring)
    by = await world.wiring.reviewers.find_actor("otto", "slack")
    yes = DecisionRequest(action="approve", digest=pending.items[0].digest)
    with pytest.raises(NotAllowed, match="roles do not let you decide"):
        await world.wiring.desk.decide(pending.id, "i1", yes, by)


async def test_reviewers_key_of_an_auditor_decides_nothing(world: World) -> None:
    await make_person(world.wiring, "otto", "auditor")
    _, world.tokens["otto"] = await world.wiring.api_keys.create("otto", kind="reviewer")
    pending = await make_pending(world.wiring)
    body = {"action": "approve", "digest": pending.items[0].digest}
    async with world.client("otto") as otto:
        assert (await otto.get("/api/v1/suspensions")).status_code == 200
        answer = await otto.post(f"/api/v1/suspensions/{pending.id}/items/i1/decision", json=body)
    assert (answer.status_code, answer.json()["permission"]) == (403, "decide")


async def test_roles_hold_for_open_sessions(world: World) -> None:
    async with world.client("anna") as anna, world.client("root") as root:
        assert (await anna.get("/api/v1/activity")).status_code == 403
        changed = await root.put("/api/v1/reviewers/anna/roles", json={"roles": ["auditor"]})
        assert (changed.status_code, changed.json()["roles"]) == (200, ["auditor"])
        world.wiring.credentials.forget(world.tokens["anna"])
        assert (await anna.get("/api/v1/activity")).status_code == 200


async def test_nobody_gives_more_than_they_may_do(world: World) -> None:
    auditor = await find_principal(world, "otto", "auditor")
    with pytest.raises(NotAllowed, match="You cannot give admin"):
        await add_reviewer(world.wiring, "ben", PASSWORD, ("admin",), auditor)
    with pytest.raises(NotAllowed, match="root may do more than you"):
        await check_rank(world.wiring, auditor, "root")
    await check_rank(world.wiring, auditor, "otto")


async def test_unknown_role_is_refused_with_the_known_ones(world: World) -> None:
    root = await find_principal(world, "root", "admin")
    with pytest.raises(InvalidInput, match="reviewer, rule_author, auditor, operator, admin"):
        await set_roles(world.wiring, root, "anna", ("boss",))


async def test_last_admin_keeps_the_role(world: World) -> None:
    root = await find_principal(world, "root", "admin")
    with pytest.raises(Conflict, match="the last active admin"):
        await set_roles(world.wiring, root, "root", ("reviewer",))
