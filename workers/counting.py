"""Counting of what commits asked and decided, in the clock's process. No decision waits for it."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import structlog

from service.core.wiring import Wiring
from service.features.control.store import Recents
from service.features.insights.attention import warn_tired
from service.features.insights.facts import Facts, PersonFact
from service.features.insights.store import Counters, tally
from workers.repeating import repeat

TICK_S = 0.5
_AT_ONCE = 200

log = structlog.get_logger()


@dataclass
class Counting:
    """Counts facts.

    Each fact counts once, in its hour and day, however many clocks count it and however often, as after a crash.
    """

    wiring: Wiring
    wait_calm: Callable[[], Awaitable[None]] | None = None

    async def count_waiting(self) -> int:
        """Count all facts that wait, a batch in each calm moment; return their number."""
        counted = 0
        while waiting := await self.wiring.part(Counters).waiting(_AT_ONCE):
            for entry in waiting:
                if entry.facts is None:
                    log.warning("facts_not_counted", stored=entry.stored[:200])
            facts = [entry.facts for entry in waiting if entry.facts is not None]
            await self._note_recent(facts)
            for fact in facts:
                await self.wiring.part(Recents).second_look.add_drawn(fact.drawable, fact.at_ms)
            names = {person.name for fact in facts for person in fact.people}
            zones = {name: ZoneInfo(await self.wiring.duty.find_time_zone(name)) for name in names}
            tallied = [(entry, tally(entry.facts, zones) if entry.facts is not None else {}) for entry in waiting]
            counted += await self.wiring.part(Counters).count(tallied)
            if self.wait_calm is not None:
                await self.wait_calm()
        return counted

    async def _note_recent(self, facts: Iterable[Facts]) -> None:
        by_name: dict[str, list[tuple[PersonFact, int]]] = defaultdict(list)
        for fact in facts:
            for person in fact.people:
                by_name[person.name].append((person, fact.at_ms))
                if person.drill:
                    await self.wiring.part(Recents).drills.add(person.name, [(person, fact.at_ms)])
        for name, decisions in by_name.items():
            await self.wiring.part(Recents).add(name, decisions)
            await warn_tired(self.wiring.part(Recents), name)


async def keep_counting(wiring: Wiring, wait_calm: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
    """Count until stopped."""
    await repeat(Counting(wiring, wait_calm).count_waiting, TICK_S, stopping, "counting_failed")
