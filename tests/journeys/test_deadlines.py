"""The deadline holds though the clock stands still."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.agents import Effects
from demo.clients import Refused
from demo.journeys import AGENT, connected
from demo.model import load_turns
from demo.stacks import Stack
from launch.stops import wait_until
from sayso.core.clock import now_ms
from sayso.core.records.suspensions import RunStatus
from tests.journeys.stacks import PATIENCE_S, await_pause, pids_of, quick_stack

TICKETS = load_turns()[4]


async def test_decide_after_the_deadline_is_refused_without_a_clock(tmp_path: Path) -> None:
    with quick_stack(tmp_path / "home") as stack:
        async with connected(stack) as (agent, reviewer):
            with stopped_clock(stack):
                run = await agent.start_run(AGENT, TICKETS.request, "Tickets", key="start")
                pause = await await_pause(agent, run.id)
                assert wait_until(lambda: now_ms() > pause.deadline_at_ms, PATIENCE_S)
                waiting = await reviewer.find_suspension(pause.suspension_id)
                assert [item.outcome for item in waiting.items] == [None, None]

                with pytest.raises(Refused, match=r"returned 409: .*deadline passed"):
                    await reviewer.decide(waiting.id, waiting.items[0], {"action": "approve"}, key="late")

            ended = await agent.await_end(run.id)

        assert ended.status is RunStatus.COMPLETED
        assert [effect.tool for effect in Effects(stack.home).read()] == ["festival.book_ticket"]


@contextmanager
def stopped_clock(stack: Stack) -> Iterator[None]:
    """Stop the clock process, as a machine that hangs would, for the length of the block."""
    (pid,) = pids_of(stack, "clock")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
