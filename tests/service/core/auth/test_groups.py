"""Groups: names, members, editors, and the index by member."""

import asyncio

import pytest

from sayso.core.calendar import WorkingHours
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound
from service.core.auth.roles import find_rights
from service.core.wiring import Wiring
from tests.builders import make_person

ADMIN, REVIEWER = find_rights(["admin"], {}), find_rights(["reviewer"], {})


async def add_people(wiring: Wiring) -> None:
    for name in ("anna", "ben", "carla"):
        await make_person(wiring, name)


async def test_group_is_created_changed_and_deleted_with_its_index(wiring: Wiring) -> None:
    await add_people(wiring)
    made = await wiring.groups.create("payments", ("ben", "anna", "ben"), ("carla",), "root")
    assert (made.members, made.editors) == (("anna", "ben"), ("carla",))
    await wiring.groups.create("ops", ("anna",), (), "root")
    assert await wiring.reviewers.list_groups("anna") == ("ops", "payments")
    await wiring.groups.update("payments", ("carla",), ("carla",), "carla", REVIEWER)
    assert [await wiring.reviewers.list_groups(name) for name in ("anna", "carla")] == [("ops",), ("payments",)]
    await wiring.groups.delete("payments", "root")
    assert await wiring.reviewers.list_groups("carla") == ()
    assert [one.name for one in await wiring.groups.list_all()] == ["ops"]


@pytest.mark.parametrize("name", ["", "Payments", "a b", "group:x", "x" * 65, "timeout", "sayso"])
async def test_create_refuses_a_bad_or_reserved_name(wiring: Wiring, name: str) -> None:
    with pytest.raises(InvalidInput):
        await wiring.groups.create(name, (), (), "root")


async def test_create_refuses_taken_names_and_unknown_people(wiring: Wiring) -> None:
    await add_people(wiring)
    await wiring.reviewers.deactivate("ben")
    await wiring.groups.create("payments", (), (), "root")
    with pytest.raises(Conflict, match="already a group named payments"):
        await wiring.groups.create("payments", (), (), "root")
    with pytest.raises(InvalidInput, match="No active reviewer is named ben, dora"):
        await wiring.groups.create("ops", ("anna", "ben", "dora"), (), "root")
    with pytest.raises(InvalidInput, match="No active reviewer is named dora"):
        await wiring.groups.create("ops", (), ("dora",), "root")
    with pytest.raises(InvalidInput, match="at most 500"):
        await wiring.groups.create("ops", ("anna",) * 501, (), "root")
    with pytest.raises(InvalidInput, match="'XX' are unknown"):
        await wiring.groups.create("ops", (), (), "root", WorkingHours(country="XX"))


async def test_update_only_by_admins_and_editors(wiring: Wiring) -> None:
    await add_people(wiring)
    await wiring.groups.create("payments", ("anna",), ("carla",), "root")
    with pytest.raises(NotAllowed, match="Ask carla or an admin"):
        await wiring.groups.update("payments", ("ben",), ("carla",), "ben", REVIEWER)
    with pytest.raises(NotAllowed, match="Only an admin can change the editors"):
        await wiring.groups.update("payments", ("ben",), ("carla", "ben"), "carla", REVIEWER)
    saved = await wiring.groups.update("payments", ("ben",), (), "root", ADMIN)
    assert (saved.members, saved.editors) == (("ben",), ())
    with pytest.raises(NotFound, match="no group named 'ops'"):
        await wiring.groups.update("ops", (), (), "root", ADMIN)
    with pytest.raises(NotFound):
        await wiring.groups.delete("ops", "root")


async def test_update_keeps_a_member_who_is_deactivated(wiring: Wiring) -> None:
    await add_people(wiring)
    await wiring.groups.create("payments", ("anna",), (), "root")
    await wiring.reviewers.deactivate("anna")
    saved = await wiring.groups.update("payments", ("anna", "ben"), (), "root", ADMIN)
    assert saved.members == ("anna", "ben")


async def test_concurrent_changes_leave_a_correct_index(wiring: Wiring) -> None:
    await add_people(wiring)
    await wiring.groups.create("payments", (), (), "root")
    sets = [("anna",), ("ben",), ("anna", "carla"), ("ben", "carla")] * 3
    await asyncio.gather(*(wiring.groups.update("payments", one, (), "root", ADMIN) for one in sets))
    members = (await wiring.groups.read("payments")).members
    indexed = [name for name in ("anna", "ben", "carla") if await wiring.reviewers.list_groups(name)]
    assert tuple(indexed) == members
