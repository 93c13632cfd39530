"""The primary of a store behind sentinels is killed: decisions stay, and every process comes back by itself."""

from pathlib import Path

import pytest

from demo.clients import Client
from demo.journeys import connected
from launch.stops import wait_until
from sayso.core.records.events import EventType
from sayso.core.records.suspensions import RunStatus
from service.core.jobs import worker_pids
from tests.journeys.stacks import PATIENCE_S, Paused, await_pause, pids_of, quick_stack
from tests.journeys.waiting_agents import LET_GO, begun_in
from tests.sentinels import Group, running_group

AGENTS = "demo.agents:support,tests.journeys.waiting_agents:again"
RUNS = 4
PROGRAMS = ("service", "worker", "clock")


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_runs_go_on_after_a_fail_over_to_the_replica(tmp_path: Path, tls: bool) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    (tmp_path / "servers").mkdir()
    with (
        running_group(tmp_path / "servers", password="pa55word", tls=tls) as group,
        quick_stack(
            tmp_path / "home",
            SAYSO_REDIS_URL=group.url,
            SAYSO_AGENTS=AGENTS,
            SAYSO_POLICY=str(policy),
        ) as stack,
    ):
        async with connected(stack) as (client, reviewer):
            await client.await_agent("again")
            runs = [(await client.start_run("again", "Wait.", "A run", key=f"start-{n}")).id for n in range(RUNS)]
            pauses = [await await_pause(client, run) for run in runs]
            for number in range(2):
                await approve(reviewer, pauses[number], key=f"before-{number}")
            assert wait_until(lambda: all(begun_in(stack.home, run) for run in runs[:2]), PATIENCE_S)
            before = {name: pids_of(stack, name) for name in PROGRAMS}
            await_copied(group)

            old = group.kill_primary()
            new = group.await_primary(other_than=old)
            (stack.home / LET_GO).touch()
            for number in range(2, RUNS):
                await approve(reviewer, pauses[number], key=f"after-{number}")
            ended = [await client.await_end(run) for run in runs]

            assert [run.status for run in ended] == [RunStatus.COMPLETED] * RUNS
            assert [await count_decisions(client, run) for run in runs] == [1] * RUNS
            assert {name: pids_of(stack, name) for name in PROGRAMS} == before
            assert wait_until(lambda: worker_pids(group.url) == before["worker"], PATIENCE_S)
            assert group.find_primary() == new


def await_copied(group: Group) -> None:
    """Wait until the replica has all that was confirmed."""
    with group.client(group.find_primary()) as primary:
        primary.incr("copied")
        assert primary.wait(1, 10_000) == 1


async def approve(reviewer: Client, paused: Paused, key: str) -> None:
    (item,) = (await reviewer.find_suspension(paused.suspension_id)).items
    await reviewer.decide(paused.suspension_id, item, {"action": "approve"}, key=key)


async def count_decisions(client: Client, run_id: str) -> int:
    """Return how many items of an ended run were decided."""
    return len([entry async for entry in client.follow(run_id) if entry.type == EventType.DECISION_RECORDED])
