"""Kill and stop the processes of a running Sayso, one after the other, in an order that its seed makes."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from demo.stacks import Stack
from launch.errors import NotReady
from tests.chaos.plans import dice

STOPPED_S = 3.0
"""How long a worker is stopped: longer than its lease."""

VICTIMS = {"horse": 38, "worker": 16, "service": 13, "clock": 8, "server": 7, "stopped horse": 13, "stopped worker": 5}
_SUPERVISED = {"horse": "worker", "stopped horse": "worker", "stopped worker": "worker"}
_PAUSE_S = (0.3, 0.8)


class Killer:
    """Kills up to `kills` times while `may_kill` lets it; `killed` counts what was hit."""

    def __init__(self, stack: Stack, seed: int, kills: int, may_kill: Callable[[int], bool]) -> None:
        self._stack = stack
        self._throw = dice(seed, "kills")
        self._kills = kills
        self._may_kill = may_kill
        self._waking: set[asyncio.Task[None]] = set()
        self.killed: Counter[str] = Counter()

    @property
    def done(self) -> int:
        """How often it has hit."""
        return self.killed.total()

    async def run(self) -> None:
        """Return after the last kill, with everybody awake again."""
        while self.done < self._kills:
            await asyncio.sleep(self._throw.uniform(*_PAUSE_S))
            if self._may_kill(self.done):
                await self._strike(self._throw.choices([*VICTIMS], [*VICTIMS.values()])[0])
        await asyncio.gather(*self._waking)

    async def _strike(self, victim: str) -> None:
        pids = await asyncio.to_thread(self._find, victim)
        if not pids:
            return
        pid = self._throw.choice(sorted(pids))
        stops = victim.startswith("stopped")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if stops else signal.SIGKILL)
            self.killed[victim] += 1
            if stops:
                waking = asyncio.create_task(_wake(pid))
                self._waking.add(waking)
                waking.add_done_callback(self._waking.discard)

    def _find(self, victim: str) -> list[int]:
        """Return the processes that are such a victim just now."""
        name = _SUPERVISED.get(victim, victim)
        try:
            states = self._stack.programs()
        except NotReady:
            return []
        pids = [state.pid for state in states if state.name.startswith(name) and state.pid and not state.is_down]
        return [child for pid in pids for child in _children_of(pid)] if victim.endswith("horse") else pids


async def _wake(pid: int) -> None:
    """Let a stopped process go on after a while, whether or not the storm is being ended."""
    try:
        await asyncio.sleep(STOPPED_S)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _children_of(pid: int) -> list[int]:
    """Return the processes that one forked: a worker's work horse, with the work in progress."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return []
