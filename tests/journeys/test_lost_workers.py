"""A worker is killed while calls are in flight: one that may run again does, about any other a person is asked."""

from pathlib import Path

from demo.clients import Client
from demo.journeys import connected
from demo.stacks import Stack
from launch.stops import wait_until
from sayso.core.canonical_json import JsonObject
from sayso.core.records.events import EventType
from sayso.core.records.suspensions import RunStatus
from tests.journeys.stacks import PATIENCE_S, await_pause, kill, quick_stack
from tests.journeys.waiting_agents import LET_GO, begun_in

AGENTS = "demo.agents:support,tests.journeys.waiting_agents:again,tests.journeys.waiting_agents:once"


async def test_lost_worker_reruns_idempotent_calls_and_asks_about_others(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: allow\nrules: []\n")
    with quick_stack(tmp_path / "home", SAYSO_AGENTS=AGENTS, SAYSO_POLICY=str(policy)) as stack:
        async with connected(stack) as (client, reviewer):
            again, once = await begin(stack, client, "again"), await begin(stack, client, "once")

            kill(stack, "worker")
            assert wait_until(lambda: len(begun_in(stack.home, again)) == 2, PATIENCE_S)
            (stack.home / LET_GO).touch()
            ended_again = await client.await_end(again)
            paused = await await_pause(client, once)
            (item,) = (await reviewer.find_suspension(paused.suspension_id)).items
            looked_up: JsonObject = {"action": "value", "value": {"choice": "skip", "result": "it had run"}}
            await reviewer.decide(paused.suspension_id, item, looked_up, key="doubt")
            ended_once = await client.await_end(once)

            first, second = begun_in(stack.home, again)
            assert (first.key, first.attempt, second.attempt) == (second.key, 1, 2)
            assert first.pid != second.pid
            assert (ended_again.status, ended_again.error) == (RunStatus.COMPLETED, None)
            assert await completed_calls(client, again) == [(True, "let go", None)]
            assert len(begun_in(stack.home, once)) == 1
            assert (ended_once.status, ended_once.error) == (RunStatus.COMPLETED, None)
            assert await completed_calls(client, once) == [(True, "it had run", None)]


async def begin(stack: Stack, client: Client, agent: str) -> str:
    """Start a run and return its id when its call is in flight."""
    await client.await_agent(agent)
    run = await client.start_run(agent, "Wait.", "A long call", key=f"start-{agent}")
    assert wait_until(lambda: len(begun_in(stack.home, run.id)) == 1, PATIENCE_S)
    return run.id


async def completed_calls(client: Client, run_id: str) -> list[tuple[bool, object, object]]:
    trail = [entry async for entry in client.follow(run_id)]
    ended = [entry.data for entry in trail if entry.type == EventType.TOOL_COMPLETED]
    return [(data["success"], data["output"], data["error"]) for data in ended]
