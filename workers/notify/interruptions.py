"""What people allow: quiet hours, at most so many interruptions an hour, and many cards in one digest."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from sayso.core.records.items import Item
from sayso.errors import TooManyRequests
from service.channels.base import Recipient
from service.channels.cards import Card
from service.core.auth.duty import Hold, find_hold
from service.core.store.attempts import Allowance, Attempts
from service.core.store.directory import Preferences

MOST_CARDS = 50
"""The most cards of one digest."""

_WINDOW_S = 0.3
_HOUR_S = 3600

Flush = Callable[[tuple[Card, ...], str], Awaitable[None]]
"""Sends the cards of a digest under its event id."""


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
            await _send(waiting[start : start + MOST_CARDS], flush)


async def _send(group: Sequence[_Waiting], flush: Flush) -> None:
    ids = sorted(entry.event_id for entry in group)
    event_id = f"digest:{sha256(' '.join(ids).encode()).hexdigest()[:32]}"
    try:
        await flush(tuple(entry.card for entry in group), event_id)
    except Exception as error:  # noqa: BLE001  each of the waiting attempts raises it
        for entry in group:
            if not entry.sent.done():
                entry.sent.set_exception(error)
    else:
        for entry in group:
            if not entry.sent.done():
                entry.sent.set_result(None)
