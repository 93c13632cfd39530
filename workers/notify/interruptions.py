"""What people allow: quiet hours, few interruptions an hour, digests, and a delegate while they are absent."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from sayso.core.clock import now_ms
from sayso.core.records.items import Item
from sayso.errors import IllegalTransition, NotFound, TooManyRequests
from sayso.wire.people import Preferences
from service.channels.base import Recipient
from service.channels.cards import Card
from service.core.auth.duty import Hold, find_hold
from service.core.store.attempts import Allowance, Attempts
from service.core.store.directory import find_chain
from service.core.wiring import Wiring

MOST_CARDS = 50  # the most cards of one digest
_WINDOW_S = 0.3
_HOUR_S = 3600

Flush = Callable[[tuple[Card, ...], str], Awaitable[None]]  # sends the cards of a digest under its event id


@dataclass(frozen=True)
class Interruptions:
    """The interruptions of a tenant's people."""

    attempts: Attempts
    tenant: str

    async def find_hold(
        self, person: str, preferences: Preferences, item: Item, since_ms: int, now_ms: int
    ) -> Hold | None:
        """Return how long an item's card waits, or None to send it now, which counts as an interruption."""
        if item.terms.urgent:
            return None
        hold = find_hold(preferences, since_ms, item.terms.deadline_at_ms, now_ms)
        if hold is not None or preferences.cap_per_hour is None:
            return hold
        most = preferences.cap_per_hour
        try:
            await self.attempts.count(Allowance("interruptions", most, _HOUR_S), f"{self.tenant} {person}")
        except TooManyRequests as error:
            wait_ms = int(str(error.facts["retry_after_s"])) * 1000
            return Hold(now_ms + wait_ms, f"at most {most} interruption{'' if most == 1 else 's'} an hour")
        return None


class _Waiting(NamedTuple):
    card: Card
    event_id: str
    sent: asyncio.Future[None]


@dataclass
class Digests:
    """The cards that wait for the same person, address and channel, sent together."""

    window_s: float = _WINDOW_S
    _waiting: dict[tuple[str, Recipient], list[_Waiting]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def join(self, channel: str, to: Recipient, card: Card, event_id: str, flush: Flush) -> None:
        """Return once the card has been sent in a digest; raises what its sending raises."""
        key, entry = (channel, to), _Waiting(card, event_id, asyncio.get_running_loop().create_future())
        waiting = self._waiting.setdefault(key, [])
        waiting.append(entry)
        if len(waiting) == 1:
            task = asyncio.create_task(self._send_later(key, flush))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await entry.sent

    async def _send_later(self, key: tuple[str, Recipient], flush: Flush) -> None:
        await asyncio.sleep(self.window_s)
        waiting = self._waiting.pop(key)
        for start in range(0, len(waiting), MOST_CARDS):
            group = waiting[start : start + MOST_CARDS]
            ids = sorted(entry.event_id for entry in group)
            event_id = f"digest:{sha256(' '.join(ids).encode()).hexdigest()[:32]}"
            fault: Exception | None = None
            try:
                await flush(tuple(entry.card for entry in group), event_id)
            except Exception as error:  # noqa: BLE001  each of the waiting attempts raises it
                fault = error
            for entry in group:
                if not entry.sent.done():
                    entry.sent.set_result(None) if fault is None else entry.sent.set_exception(fault)


_AGAIN_MS = 20_000
"""The delay of the second search: an attempt under way at the first one may have sent a card to the absent person."""

_NEVER = 1 << 62
_PAGE = 100


@dataclass
class AbsenceWatch:
    """Searches the open items when an absence is new to this process, and once more; a repetition does no harm."""

    wiring: Wiring
    again_at_ms: dict[str, int] = field(default_factory=dict)

    async def move_cards(self, at_ms: int | None = None) -> int:
        """Move the cards of people whose absence began; return the number of changed suspensions."""
        at_ms = now_ms() if at_ms is None else at_ms
        absences = await self.wiring.duty.list_absences()
        current = [absence for absence in absences if absence.covers(at_ms)]
        due = [absence.id for absence in current if self.again_at_ms.get(absence.id, 0) <= at_ms]
        if not due:
            return 0
        active = {reviewer.name for reviewer in await self.wiring.reviewers.list_all() if reviewer.active}
        chains = {absence.person: find_chain(absences, absence.person, at_ms, active) for absence in current}
        chains = {person: chain for person, chain in chains.items() if chain}
        ids, moved = await self.wiring.runs.inbox(0, _NEVER) if chains else [], 0
        for start in range(0, len(ids), _PAGE):
            for record in await self.wiring.desk.suspensions.read_many(ids[start : start + _PAGE]):
                if any(delivery.person in chains for item in record.items for delivery in item.deliveries):
                    with suppress(IllegalTransition, NotFound):  # decided or deleted meanwhile
                        saved = await self.wiring.desk.move_cards(record.id, chains)
                        moved += saved.record.version > record.version
        known = self.again_at_ms
        self.again_at_ms = {
            id_: known.get(id_, 0) if id_ not in due else _NEVER if id_ in known else at_ms + _AGAIN_MS
            for id_ in (absence.id for absence in current)
        }
        return moved
