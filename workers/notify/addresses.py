"""The addresses of reviewers and groups on channels."""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.clock import now_ms
from service.channels.base import Recipient
from service.channels.who import find_preferences, list_present
from service.store.directory.duty import Preferences
from service.wiring import Wiring


@dataclass(frozen=True)
class ContactBook:
    """The linked addresses of a tenant's active reviewers."""

    wiring: Wiring

    async def find_preferences(self, person: str, reviewers: Sequence[str]) -> Preferences:
        """Return how a person is notified whom these reviewers include."""
        return await find_preferences(self.wiring, person, reviewers)

    async def find(self, channel: str, person: str, requester: str = "") -> tuple[Recipient, ...]:
        """Return the addresses of a person or of a group's members; of everybody linked for an empty name.

        An absent person's delegate stands in, unless the chain of delegates includes the requester.
        """
        present = await list_present(self.wiring, person, now_ms(), requester)
        found: list[Recipient] = []
        for name in present:
            found += [Recipient(name, address) for address in await self.wiring.contacts.addresses_of(name, channel)]
        return tuple(found)
