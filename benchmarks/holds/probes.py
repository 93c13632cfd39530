"""How long an event loop is held."""

import asyncio
import time


class LoopProbe:
    """The longest time between two turns of a task in which the process worked, in milliseconds.

    Every other request waits that long. Time in which other processes had the processor does not count.
    """

    def __init__(self) -> None:
        self.worst_ms = 0.0

    async def run(self) -> None:
        """Measure until it is cancelled."""
        while True:
            began_s, worked_s = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.001)
            held_s = min(time.perf_counter() - began_s, time.process_time() - worked_s)
            self.worst_ms = max(self.worst_ms, held_s * 1000)

    def take(self) -> float:
        """Return the longest time since the last call."""
        worst_ms, self.worst_ms = self.worst_ms, 0.0
        return worst_ms
