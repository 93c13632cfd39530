"""The first run of a new desk is one that the demo's recorded model can replay."""

import pytest

from demo.model import load_turns, plan_turns
from sayso.errors import Conflict
from service.core.operations.runs import DEMO_INPUT, is_demo_served, start_demo
from tests.builders import register_agent
from tests.service.worlds import World


def test_demo_input_is_recorded() -> None:
    (turn,) = plan_turns(DEMO_INPUT, load_turns())
    assert turn.calls[0].arguments["amount"] == 5000


async def test_demo_is_started_once_in_the_name_of_its_key(world: World) -> None:
    await register_agent(world.wiring)
    first = await start_demo(world.wiring, "root")
    again = await start_demo(world.wiring, "root")
    run = first.record.run
    assert again.record.run.id == run.id
    assert (run.agent, run.owner, run.title) == ("demo", "demo", "First steps, started by root")
    key = next(one for one in await world.wiring.api_keys.list_all() if one.name == "demo")
    assert run.key_id == key.id
    assert not await is_demo_served(world.wiring), "no worker runs"


async def test_demo_without_a_valid_key_is_refused(world: World) -> None:
    await register_agent(world.wiring)
    for key in await world.wiring.api_keys.list_all():
        await world.wiring.api_keys.revoke(key.id)
    with pytest.raises(Conflict, match="make up"):
        await start_demo(world.wiring, "root")
