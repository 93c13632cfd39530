"""A channel for tests: it keeps cards in memory, and refuses or hangs on request."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sayso.wire.people import Preferences
from service.channels.base import CardAction, DeliveryFailed, Recipient, Rendered, allowed_actions
from service.channels.cards import Card

ALL = frozenset(CardAction)


@dataclass
class MemoryChannel:
    """Accepts every card unless `failure` is set; `calls` lists what was asked of it."""

    name: str = "memory"
    kind: str = "memory"
    per_minute: int = 6000
    destination: str = "memory.example"
    shared_address: str = ""
    failure: Exception | None = None
    hangs: bool = False
    gone: set[str] = field(default_factory=set)
    cards: dict[str, Card] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def render(self, card: Card) -> Rendered:
        return Rendered(
            card, card.args_text, not card.masked, allowed_actions(card, complete=not card.masked, decides=ALL)
        )

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        await self._take("send", to)
        self.events.append(event_id)
        self.cards[to.address] = card
        return f"m{len(self.events)}"

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        await self._take("update", to)
        self.cards[to.address] = card

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        await self._take("remind", to)

    async def aclose(self) -> None:
        return None

    async def _take(self, call: str, to: Recipient) -> None:
        self.calls.append((call, to.address))
        if self.hangs:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure
        if to.address in self.gone:
            raise DeliveryFailed("gone", permanent=True)


@dataclass
class DigestChannel(MemoryChannel):
    """Also accepts many cards in one message."""

    digests: list[list[str]] = field(default_factory=list)

    async def send_digest(self, to: Recipient, cards: Sequence[Card], event_id: str) -> None:
        await self._take("digest", to)
        self.digests.append(sorted(card.suspension_id for card in cards))


@dataclass
class Book:
    """Addresses by name; groups by `group:<name>`."""

    people: dict[str, tuple[str, ...]]
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    preferences: dict[str, Preferences] = field(default_factory=dict)

    async def find_preferences(self, person: str, reviewers: Sequence[str]) -> Preferences:
        return self.preferences.get(person, Preferences())

    async def find(self, channel: str, person: str, requester: str = "") -> tuple[Recipient, ...]:
        names: Any = self.groups.get(person, (person,)) if person else self.people
        return tuple(Recipient(name, address) for name in names for address in self.people.get(name, ()))


@dataclass
class RoomChannel(MemoryChannel):
    """A channel with one destination for everybody."""

    shared_address: str = "#ops"
    shared_only: bool = True
