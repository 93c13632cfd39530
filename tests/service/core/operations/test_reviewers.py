"""People are deactivated while an admin is left."""

import asyncio

import pytest

from sayso.core.records.terms import RuleTerms
from sayso.errors import Conflict
from service.core.operations.people import deactivate_reviewer, find_shortages
from tests.builders import PASSWORD, ask, make_pending
from tests.service.worlds import World


async def test_two_admins_cannot_deactivate_each_other(world: World) -> None:
    await world.wiring.reviewers.add("ruth", PASSWORD, ("admin",))
    done = await asyncio.gather(
        deactivate_reviewer(world.wiring, "root", "ruth"),
        deactivate_reviewer(world.wiring, "ruth", "root"),
        return_exceptions=True,
    )
    (refused,) = [one for one in done if isinstance(one, Conflict)]
    assert "is the last active admin" in refused.message
    admins = [one for one in await world.wiring.reviewers.list_all() if "admin" in one.roles and one.active]
    assert len(admins) == 1


async def test_reviewer_can_be_deactivated_beside_one_admin(world: World) -> None:
    assert not (await deactivate_reviewer(world.wiring, "anna", "root")).active
    with pytest.raises(Conflict, match="deactivate yourself"):
        await deactivate_reviewer(world.wiring, "root", "root")


async def test_member_who_alone_can_fill_a_place_is_missed(world: World) -> None:
    for name in ("fay", "lea", "lou"):
        await world.wiring.reviewers.add(name, PASSWORD, ("reviewer",))
    await world.wiring.groups.create("finance", ("fay",), (), "root")
    await world.wiring.groups.create("legal", ("lea", "lou"), (), "root")
    groups = ("group:finance", "group:legal")
    terms = RuleTerms.model_validate({"reviewers": groups, "quorum": {"each_of": groups}})
    await make_pending(world.wiring, ask(terms=terms))
    (found,) = await find_shortages(world.wiring, "fay")
    assert found.missing == 1
    assert await find_shortages(world.wiring, "lou") == []
