"""People are deactivated while an admin is left."""

import asyncio

import pytest

from sayso.errors import Conflict
from service.operations.people.reviewers import deactivate_reviewer
from tests.builders import PASSWORD
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
