"""Kill and stop processes of a running Sayso, one after the other, in an order derived from the seed."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from demo.stacks import Stack
from launch import NotReady
from tests.chaos.workload.plans import seeded_random

STOPPED_S = 3.0
"""Time for which a worker is stopped: longer than its lease."""

VICTIMS = {"horse": 38, "worker": 16, "service": 13, "clock": 12, "server": 7, "stopped horse": 13, "stopped worker": 5}
"""The clock also sends cards and receives presses of buttons."""

_SUPERVISED = {"horse": "worker", "stopped horse": "worker", "stopped worker": "worker"}
_INTERVAL_S = (0.3, 0.8)


class Killer:
    """Kills up to `kills` times while `may_kill` allows it; `killed` counts the victims."""

    def __init__(self, stack: Stack, seed: int, kills: int, may_kill: Callable[[int], bool]) -> None:
        self._stack = stack
        self._rng = seeded_random(seed, "kills")
        self._kills = kills
        self._may_kill = may_kill
        self._waking: set[asyncio.Task[None]] = set()
        self.killed: Counter[str] = Counter()

    @property
    def done(self) -> int:
        """Number of kills so far."""
        return self.killed.total()

    async def run(self) -> None:
        """Return after the last kill, when every stopped process runs again."""
        while self.done < self._kills:
            await asyncio.sleep(self._rng.uniform(*_INTERVAL_S))
            if self._may_kill(self.done):
                await self._kill_one(self._rng.choices([*VICTIMS], [*VICTIMS.values()])[0])
        await asyncio.gather(*self._waking)

    async def _kill_one(self, victim: str) -> None:
        pids = await asyncio.to_thread(self._find, victim)
        if not pids:
            return
        pid = self._rng.choice(sorted(pids))
        stops = victim.startswith("stopped")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if stops else signal.SIGKILL)
            self.killed[victim] += 1
            if stops:
                waking = asyncio.create_task(_wake(pid))
                self._waking.add(waking)
                waking.add_done_callback(self._waking.discard)

    def _find(self, victim: str) -> list[int]:
        """Return the current processes of this kind."""
        name = _SUPERVISED.get(victim, victim)
        try:
            states = self._stack.programs()
        except NotReady:
            return []
        pids = [state.pid for state in states if state.name.startswith(name) and state.pid and not state.is_down]
        return [child for pid in pids for child in _children_of(pid)] if victim.endswith("horse") else pids


async def _wake(pid: int) -> None:
    """Continue a stopped process after a while, also when the experiment is interrupted."""
    try:
        await asyncio.sleep(STOPPED_S)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _children_of(pid: int) -> list[int]:
    """Return the child processes: a worker's work horses."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return []
