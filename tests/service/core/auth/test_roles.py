"""Roles: who gives which, what they let a person do, and that an auditor alone decides nothing."""

import pytest

from sayso.core.records.decisions import DecisionRequest, Limit
from sayso.errors import Conflict, InvalidInput, NotAllowed
from service.core.auth.credentials import Principal
from service.core.auth.roles import ALL, PERMISSIONS, ROLES, find_rights
from service.core.operations.open_items import count_mine
from service.core.operations.people import add_reviewer, check_rank, set_roles
from service.core.store.directory import Role
from tests.builders import PASSWORD, ask, make_pending, make_person
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


async def test_limited_role_decides_only_what_its_limit_covers(world: World) -> None:
    limit = Limit(tools=("pay*",), agents=("demo",))
    made = Role(name="payments", permissions=("read_items", "decide"), limit=limit)
    await world.wiring.roles.save(made, find_rights(["admin"], {}))
    world.tokens["lim"] = await make_person(world.wiring, "lim", "payments")
    pay_out = ask().model_copy(update={"tool": ask().tool.model_copy(update={"name": "pay_out"})})
    refund, payment = await make_pending(world.wiring), await make_pending(world.wiring, pay_out)
    async with world.client("lim") as lim:
        answers = [
            await lim.post(
                f"/api/v1/suspensions/{record.id}/items/i1/decision",
                json={"action": "deny", "digest": record.items[0].digest},
            )
            for record in (refund, payment)
        ]
    assert [answer.status_code for answer in answers] == [403, 200]
    assert "roles do not let you decide" in answers[0].json()["detail"]
    assert await count_mine(world.wiring, await world.wiring.reviewers.find_actor("lim", "web")) == 0


async def test_role_may_do_no_more_than_its_maker(world: World) -> None:
    maker = find_rights(["auditor"], {})
    with pytest.raises(NotAllowed, match="The role freezer may do more than you"):
        await world.wiring.roles.save(Role(name="freezer", permissions=("freeze",)), maker)
    await world.wiring.roles.save(Role(name="reader", permissions=("read_items",)), maker)


@pytest.mark.parametrize(("name", "permissions"), [("admin", ("decide",)), ("A b", ("decide",)), ("x", ("fly",))])
async def test_role_with_a_bad_name_or_permission_is_refused(
    world: World, name: str, permissions: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidInput):
        await world.wiring.roles.save(Role(name=name, permissions=permissions), find_rights(["admin"], {}))


async def test_role_is_deleted_once_nobody_has_it(world: World) -> None:
    async with world.client("root") as root:
        assert (await root.put("/api/v1/roles/reader", json={"permissions": ["read_items"]})).status_code == 200
        assert (await root.put("/api/v1/reviewers/anna/roles", json={"roles": ["reader"]})).status_code == 200
        assert (await root.delete("/api/v1/roles/reader")).status_code == 409
        await root.put("/api/v1/reviewers/anna/roles", json={"roles": ["reviewer"]})
        assert (await root.delete("/api/v1/roles/reader")).status_code == 204
