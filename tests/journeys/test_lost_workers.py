"""A worker is killed while a call of its is in flight: a call that may run again does, any other ends the run."""

from collections.abc import Iterator

import pytest

from demo.clients import Client
from demo.journeys import connected
from demo.stacks import Stack
from launch.waits import wait_until
from sayso.events import EventType
from sayso.suspensions import RunStatus
from tests.journeys.stacks import PATIENCE_S, kill_process, parent_of, quick_stack
from tests.journeys.waiting_agents import LET_GO, begun_in

AGENTS = "demo.agents:support,tests.journeys.waiting_agents:again,tests.journeys.waiting_agents:once"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("lost")
    policy = folder / "policy.yaml"
    policy.write_text("version: 1\ndefault: allow\nrules: []\n")
    with quick_stack(folder / "home", SAYSO_AGENTS=AGENTS, SAYSO_POLICY=str(policy)) as stack:
        yield stack


async def test_an_idempotent_call_is_run_again_with_the_same_key(stack: Stack) -> None:
    async with connected(stack) as (client, _):
        run_id = await start_and_lose(stack, client, "again")
        assert wait_until(lambda: len(begun_in(stack.home, run_id)) == 2, PATIENCE_S)
        (stack.home / LET_GO).touch()

        run = await client.await_end(run_id)

        assert (run.status, run.error) == (RunStatus.COMPLETED, None)
        first, second = begun_in(stack.home, run_id)
        assert first.key == second.key
        assert (first.attempt, second.attempt) == (1, 2)
        assert first.pid != second.pid
        assert await completed_calls(client, run_id) == [(True, "let go", None)]


async def test_any_other_call_is_not_and_the_run_says_that_it_may_have_run(stack: Stack) -> None:
    async with connected(stack) as (client, _):
        run_id = await start_and_lose(stack, client, "once")

        run = await client.await_end(run_id)

        unknown = "wait_once may already have run before its worker was lost; nobody knows its result."
        assert (run.status, run.error) == (RunStatus.FAILED, unknown)
        assert len(begun_in(stack.home, run_id)) == 1
        assert await completed_calls(client, run_id) == [(False, None, unknown)]


async def start_and_lose(stack: Stack, client: Client, agent: str) -> str:
    """Start a run and, with its call in flight, kill -9 the worker and the work horse that drive it."""
    (stack.home / LET_GO).unlink(missing_ok=True)
    await client.await_agent(agent)
    run = await client.start_run(agent, "Wait.", "A long call", key=f"start-{agent}")
    assert wait_until(lambda: bool(begun_in(stack.home, run.id)), PATIENCE_S)
    (begun,) = begun_in(stack.home, run.id)
    worker = parent_of(begun.pid)
    kill_process(worker)
    kill_process(begun.pid)
    return run.id


async def completed_calls(client: Client, run_id: str) -> list[tuple[bool, object, object]]:
    trail = [entry async for entry in client.follow(run_id)]
    ended = [entry.data for entry in trail if entry.type == EventType.TOOL_COMPLETED]
    return [(data["success"], data["output"], data["error"]) for data in ended]
