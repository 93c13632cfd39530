"""Stores with a clock of their own and with lost replies."""

from collections.abc import Callable
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError

from sayso.errors import Unavailable
from service.core.store.suspensions.commits import Idempotency, Room
from service.core.store.suspensions.saving import Begin, Saved, Suspensions, Verb
from service.core.store.tenants import TenantStore

FAULTS = (
    "the reply is lost",
    "the command is lost",
    "the reply is lost, and the store is unavailable",
    "the command is lost, and the store is unavailable",
)


class ClockedSuspensions(Suspensions):
    """A store whose times come from `read_clock`."""

    def __init__(self, store: TenantStore, read_clock: Callable[[], int]) -> None:
        super().__init__(store)
        self._read_clock = read_clock

    async def create(
        self,
        suspension_id: str,
        begin: Begin,
        seen: Idempotency | None = None,
        room: Room | None = None,
    ) -> Saved:
        """Save a new suspension at the time of the clock."""
        return await super().create(suspension_id, lambda _: begin(self._read_clock()), seen, room)

    async def change(
        self,
        suspension_id: str,
        verb: Verb,
        seen: Idempotency | None = None,
        known: Saved | None = None,
        room: Room | None = None,
    ) -> Saved:
        """Apply a transition at the time of the clock."""
        return await super().change(suspension_id, self.at_clock(verb), seen, known, room)

    def at_clock(self, verb: Verb) -> Verb:
        """Return the transition with the time of the clock, which never precedes the record."""
        return lambda record, _: verb(record, max(self._read_clock(), record.updated_at_ms))


class FaultySuspensions(ClockedSuspensions):
    """A store at `now_ms` whose next commit fails as `fault` says; `ran` is whether the server ran it."""

    def __init__(self, store: TenantStore, now_ms: int) -> None:
        super().__init__(store, lambda: self.now_ms)
        self.now_ms = now_ms
        self.fault: str | None = None
        self.ran = False
        self._unavailable = False
        self._direct_commit, self._direct_load = self._commit, self._load
        self._commit = self._commit_with_fault  # type: ignore[assignment]
        self._load = self._load_with_fault  # type: ignore[assignment]

    async def _commit_with_fault(self, **arguments: Any) -> Any:
        fault, self.fault = self.fault, None
        if fault is None:
            return await self._direct_commit(**arguments)
        self.ran = fault.startswith("the reply") and (await self._direct_commit(**arguments))[0] == 0
        self._unavailable = fault.endswith("unavailable")
        raise Unavailable from RedisConnectionError(fault)

    async def _load_with_fault(self, **arguments: Any) -> Any:
        if self._unavailable:
            self._unavailable = False
            raise Unavailable from RedisConnectionError("the store is unavailable")
        return await self._direct_load(**arguments)
