"""Cards of items that wait when an absence begins: they go to the delegate as well."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sayso.core.clock import now_ms
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import IllegalTransition, NotFound
from service.core.auth.absences import find_chain
from service.core.wiring import Wiring

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
        moved = await self._search({person: chain for person, chain in chains.items() if chain})
        known = self.again_at_ms
        self.again_at_ms = {
            id_: known.get(id_, 0) if id_ not in due else _NEVER if id_ in known else at_ms + _AGAIN_MS
            for id_ in (absence.id for absence in current)
        }
        return moved

    async def _search(self, chains: Mapping[str, tuple[str, ...]]) -> int:
        if not chains:
            return 0
        ids, moved = await self.wiring.runs.inbox(0, _NEVER), 0
        for start in range(0, len(ids), _PAGE):
            for record in await self.wiring.desk.suspensions.read_many(ids[start : start + _PAGE]):
                moved += await self._move(record, chains)
        return moved

    async def _move(self, record: SuspensionRecord, chains: Mapping[str, tuple[str, ...]]) -> bool:
        if not any(delivery.person in chains for item in record.items for delivery in item.deliveries):
            return False
        try:
            saved = await self.wiring.desk.move_cards(record.id, chains)
        except (IllegalTransition, NotFound):  # decided or deleted meanwhile
            return False
        return saved.record.version > record.version
