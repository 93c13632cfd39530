"""Killed programs restart, and the journey still completes."""

from pathlib import Path

import pytest

from demo.agents import Effects
from demo.checks import find_faults
from demo.clients import SuspensionSeen
from demo.journeys import run_demo
from tests.journeys.stacks import await_restart, kill, quick_stack

MAILS, CONCERTS = 2, 4


@pytest.mark.parametrize(
    ("victim", "at_pause"),
    [("service", MAILS), ("worker", MAILS), ("server", MAILS), ("clock", CONCERTS)],
)
async def test_journey_succeeds_after_a_kill(tmp_path: Path, victim: str, at_pause: int) -> None:
    seen: list[str] = []
    killed: set[int] = set()

    with quick_stack(tmp_path / "home") as stack:

        def kill_at_pause(paused: SuspensionSeen) -> None:
            seen.append(paused.id)
            if len(seen) == at_pause:
                killed.update(kill(stack, victim))

        journey = await run_demo(stack, kill_at_pause)

        assert killed
        await_restart(stack, victim, killed)
        assert find_faults(journey.run.status, journey.trail, Effects(stack.home).read()) == []
