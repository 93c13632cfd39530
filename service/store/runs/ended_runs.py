"""Ended runs: the records of one, and whether it is old enough to be erased or deleted."""

from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS
from sayso.core.records.suspensions import SuspensionRecord
from service.store.connection.connecting import text, translated
from service.store.suspensions.packing import Unpacked
from service.store.tenants import TenantStore

PROMISED_MS = 8 * DAY_MS  # how long a request of another protocol, its key and its message are kept after its end


class Age(NamedTuple):
    """The times before which a run, or a request of another protocol, must have ended."""

    ended_before_ms: int
    promised_before_ms: int

    def reached(self, record: SuspensionRecord) -> bool:
        if record.resume.endpoint_id is not None:
            promised_ms = max(record.updated_at_ms, *(item.terms.deadline_at_ms for item in record.items))
            if promised_ms >= self.promised_before_ms:
                return False
        return record.updated_at_ms < self.ended_before_ms


async def read_chain(store: TenantStore, run_id: str) -> list[Unpacked]:
    """Return the stored records of a run, the latest first; none of a deleted run. Raises `Unreadable`."""
    chain: list[Unpacked] = []
    async with translated():
        suspension_id: Any = await store.redis.get(store.keys.run(run_id))
        while suspension_id is not None:
            raw: Any = await store.redis.get(store.keys.suspension(text(suspension_id)))
            if raw is None:
                break
            chain.append(store.readings.read(text(suspension_id), raw))
            suspension_id = chain[-1].record.previous_id
    return chain
