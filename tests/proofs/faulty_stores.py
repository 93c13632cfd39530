"""Stores with a settable clock and with lost replies."""

from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError

from sayso.records.suspensions import Change, SuspensionRecord
from service.store.suspensions.commits import Idempotency, Room
from service.store.suspensions.saving import Begin, Saved, Suspensions, Verb
from service.store.tenants import TenantStore

FAULTS = (
    "the reply is lost",
    "the command is lost",
    "the reply is lost, and the store is away",
    "the command is lost, and the store is away",
)


class SettableClockSuspensions(Suspensions):
    """A store whose clock stands still until a test sets `now_ms`."""

    def __init__(self, store: TenantStore, now_ms: int) -> None:
        super().__init__(store)
        self.now_ms = now_ms

    async def create(
        self,
        suspension_id: str,
        begin: Begin,
        seen: Idempotency | None = None,
        room: Room | None = None,
    ) -> Saved:
        """Save a new suspension at `now_ms`."""
        return await super().create(suspension_id, lambda _: begin(self.now_ms), seen, room)

    async def change(
        self,
        suspension_id: str,
        verb: Verb,
        seen: Idempotency | None = None,
        known: Saved | None = None,
    ) -> Saved:
        """Apply a transition at `now_ms`."""

        def step(record: SuspensionRecord, _: int) -> Change:
            return verb(record, self.now_ms)

        return await super().change(suspension_id, step, seen, known)


class FaultySuspensions(SettableClockSuspensions):
    """A store whose next commit fails as `fault` says; `ran` is whether the server ran it."""

    def __init__(self, store: TenantStore, now_ms: int) -> None:
        super().__init__(store, now_ms)
        self.fault: str | None = None
        self.ran = False
        self._away = False
        self._steady_commit, self._steady_load = self._commit, self._load
        self._commit = self._lose  # type: ignore[assignment]
        self._load = self._miss  # type: ignore[assignment]

    async def _lose(self, **arguments: Any) -> Any:
        fault, self.fault = self.fault, None
        if fault is None:
            return await self._steady_commit(**arguments)
        self.ran = fault.startswith("the reply") and (await self._steady_commit(**arguments))[0] == 0
        self._away = fault.endswith("away")
        raise RedisConnectionError(fault)

    async def _miss(self, **arguments: Any) -> Any:
        if self._away:
            self._away = False
            raise RedisConnectionError("the store is away")
        return await self._steady_load(**arguments)
