"""The addresses of reviewers and groups on channels."""

from dataclasses import dataclass

from sayso.clock import now_ms
from sayso.errors import NotFound
from sayso.records.terms import GROUP_PREFIX
from service.channels.base import Recipient
from service.duty.absences import absent_delegate, find_absence
from service.store.directory.duty import Preferences
from service.wiring import Wiring


@dataclass(frozen=True)
class ContactBook:
    """The linked addresses of a tenant's active reviewers."""

    wiring: Wiring

    async def find_preferences(self, person: str) -> Preferences:
        """Return how the person is notified."""
        return await self.wiring.duty.find_preferences(person)

    async def find(self, channel: str, person: str, requester: str = "") -> tuple[Recipient, ...]:
        """Return the addresses of a person or of a group's members; of everybody linked for an empty name.

        An absent person's delegate stands in, unless the chain of delegates includes the requester.
        """
        absences, at_ms = await self.wiring.duty.list_absences(), now_ms()
        present: dict[str, None] = {}
        for name in await self._list_names(person):
            if find_absence(absences, name, at_ms) is None:
                present[name] = None
            elif delegate := absent_delegate(absences, name, at_ms, requester):
                present[delegate] = None
        found: list[Recipient] = []
        for name in present:
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
