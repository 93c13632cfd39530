"""The activity log of one tenant: every act of people and every refusal is one log line and one entry."""

import structlog

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.errors import Unavailable
from service.core.settings.limits import network_of
from service.core.store.activity import Activity, ActivityStore

REFUSED = "refused"
_LOG = structlog.get_logger(__name__)


class ActivityLog:
    """Records acts, and reads them."""

    def __init__(self, store: ActivityStore) -> None:
        self._store = store
        self.read_page, self.check = store.read_page, store.check

    async def record(
        self, act: str, by: str, *, door: str, address: str = "", target: str = "", **data: object
    ) -> None:
        """Add an act that was done to the log."""
        facts: JsonObject = {name: _to_json(value) for name, value in data.items() if value not in (None, "", (), [])}
        entry = Activity(seq=0, at_ms=now_ms(), act=act, by=by, door=door, address=address, target=target, data=facts)
        await self._append(entry)

    async def refuse(self, act: str, by: str, why: str, *, door: str, address: str = "", target: str = "") -> None:
        """Add a refusal; a source (a name, or a stranger's network) that is refused often gets few entries."""
        try:
            times = await self._store.count_refusal(by or network_of(address))
        except Unavailable:
            _LOG.error("activity_not_recorded", act=act, by=by, door=door, address=address)
            return
        if times:
            entry = Activity(seq=0, at_ms=now_ms(), act=act, by=by, door=door, address=address, target=target)
            await self._append(entry.model_copy(update={"outcome": REFUSED, "times": times, "data": {"why": why}}))

    async def _append(self, entry: Activity) -> None:
        try:
            placed = await self._store.append(entry)
        except Unavailable:  # what was done cannot be undone, so the log line is what is left
            facts = entry.model_dump(mode="json", exclude_defaults=True)
            _LOG.error("activity_not_recorded", **{name: facts[name] for name in facts if name != "seq"})
            return
        facts = placed.model_dump(mode="json", exclude={"before", "act"}, exclude_defaults=True)
        _LOG.info(placed.act, **facts)


def _to_json(value: object) -> str | int | bool:
    """Return a value as the log keeps it: short texts, and lists as one text."""
    if isinstance(value, bool | int):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
