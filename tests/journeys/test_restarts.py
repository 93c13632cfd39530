"""A second start of the same home finds the data of the first."""

from pathlib import Path

from demo.agents import Effects
from demo.journeys import AGENT, connected, review
from demo.model import load_turns
from sayso.core.records.suspensions import RunStatus
from tests.journeys.stacks import await_pause, quick_stack

MAILS = load_turns()[1]


async def test_item_from_before_a_restart_is_decided_after_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with quick_stack(home) as first:
        async with connected(first) as (agent, _):
            run = await agent.start_run(AGENT, MAILS.request, "Mails", key="start")
            pause = await await_pause(agent, run.id)

    known = {"SAYSO_ADMIN_PASSWORD": first.admin_password, "SAYSO_KEY": first.agent_key}
    with quick_stack(home, **known) as second:
        async with connected(second) as (agent, reviewer):
            assert (await agent.find_run(run.id)).status is RunStatus.SUSPENDED
            assert (await agent.start_run(AGENT, MAILS.request, "Mails", key="start")).id == run.id

            await review(reviewer, pause.suspension_id, lambda _: None)

            assert (await agent.await_end(run.id)).status is RunStatus.COMPLETED
        assert [effect.args["to"] for effect in Effects(home).read()] == ["john.doe@example.com"]
