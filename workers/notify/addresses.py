"""The addresses of reviewers and groups on channels."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from sayso.core.clock import now_ms
from service.channels.base import Recipient
from service.core.cache import Memory
from service.core.store.directory import Preferences
from service.core.wiring import Wiring
from service.features.people.who import find_preferences, list_present

_MOST = 10_000
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True)
class ContactBook:
    """The linked addresses of a tenant's active reviewers, each as of less than a second ago."""

    wiring: Wiring
    recipients: dict[tuple[str, str, str], Memory[tuple[Recipient, ...]]] = field(default_factory=dict)
    preferences: dict[tuple[str, ...], Memory[Preferences]] = field(default_factory=dict)

    async def find_preferences(self, person: str, reviewers: Sequence[str]) -> Preferences:
        """Return how a person is notified whom these reviewers include."""
        key = (person, *reviewers)
        return await _recall(self.preferences, key, partial(find_preferences, self.wiring, person, reviewers))

    async def find(self, channel: str, person: str, requester: str = "") -> tuple[Recipient, ...]:
        """Return the addresses of a person or of a group's members; of everybody linked for an empty name.

        An absent person's delegate stands in, unless the chain of delegates includes the requester.
        """
        read = partial(self._read, channel, person, requester)
        return await _recall(self.recipients, (channel, person, requester), read)

    async def _read(self, channel: str, person: str, requester: str) -> tuple[Recipient, ...]:
        present = await list_present(self.wiring, person, now_ms(), requester)
        recipients: list[Recipient] = []
        for name in present:
            addresses = await self.wiring.contacts.addresses_of(name, channel)
            recipients += [Recipient(name, address) for address in addresses]
        return tuple(recipients)


async def _recall(known: dict[Key, Memory[Value]], key: Key, read: Callable[[], Awaitable[Value]]) -> Value:
    """Return a value as of less than a second ago."""
    if key not in known and len(known) >= _MOST:
        known.clear()
    return await known.setdefault(key, Memory(read)).find()
