"""The addresses of reviewers and groups on channels."""

from dataclasses import dataclass

from sayso.errors import NotFound
from sayso.records.terms import GROUP_PREFIX
from service.channels.base import Recipient
from service.wiring import Wiring


@dataclass(frozen=True)
class ContactBook:
    """The linked addresses of a tenant's active reviewers."""

    wiring: Wiring

    async def find(self, channel: str, person: str) -> tuple[Recipient, ...]:
        """Return the addresses of a person or of a group's members; of everybody linked for an empty name."""
        found: list[Recipient] = []
        for name in await self._list_names(person):
            found += [Recipient(name, address) for address in await self.wiring.contacts.addresses_of(name, channel)]
        return tuple(found)

    async def _list_names(self, person: str) -> list[str]:
        if not person:
            return [one.name for one in await self.wiring.reviewers.list_all() if one.active]
        if not person.startswith(GROUP_PREFIX):
            return [person]
        try:
            return [*(await self.wiring.groups.read(person.removeprefix(GROUP_PREFIX))).members]
        except NotFound:
            return []
