"""States of runs, from the store or from the memory of the worker that saved them.

A state is found by its digest, so one that another process has replaced is read from the store.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from sayso.core.records.run_state import SealedState, StateRef, open_state
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import SaysoError, Unavailable
from service.core.store.load import Starts, count_delay
from service.core.store.runs.runs import Runs

_MOST = 512
_MOST_BYTES = 16 * 1024 * 1024
"""Limits of the states in memory: their number, and their bytes together."""


class ReadState(NamedTuple):
    """The JSON of a state, and the reference that it was read by."""

    ref: StateRef
    raw: bytes


class RunStates:
    """The states of one tenant's runs."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def keep(self, sealed: SealedState) -> None:
        """Keep a state that this worker saved; older ones make room."""
        digest, blob = sealed.ref.digest, sealed.blob
        self._bytes += len(blob) - len(self._held.pop(digest, b""))
        self._held[digest] = blob
        while len(self._held) > _MOST or self._bytes > _MOST_BYTES:
            self._bytes -= len(self._held.popitem(last=False)[1])

    def find(self, record: SuspensionRecord) -> ReadState | None:
        """Return the state of a suspension from memory, or None."""
        ref = record.state
        blob = self._held.get(ref.digest) if ref is not None else None
        return ReadState(ref, open_state(ref, blob)) if ref is not None and blob is not None else None

    async def read(self, record: SuspensionRecord) -> ReadState:
        """Return the state of a suspension; raises `InvalidInput` where it does not match its reference."""
        assert record.state is not None  # noqa: S101  a run of an agent is always saved with its state
        state = self.find(record)
        return state or ReadState(record.state, await self._runs.state(record.run.id, record.state))

    async def try_read(self, record: SuspensionRecord) -> ReadState | None:
        """Return the state of a suspension, or None where it cannot be read; a later read raises the reason."""
        try:
            return await self.read(record) if record.state is not None else None
        except SaysoError:
            return None


SAVED_EVERY_S = 1.0


class StartDelays:
    """The delays that are not yet in the store; a process that is killed loses those of the last second."""

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self._counts: Counter[str] = Counter()

    def note(self, record: SuspensionRecord, now_ms: int) -> None:
        """Count a run that begins now, at the store's time."""
        if record.receipt.enqueued_at_ms is not None:
            self._counts.update(count_delay(now_ms - record.receipt.enqueued_at_ms))

    async def save(self) -> None:
        """Add what was counted; a store that is away gets it the next time."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await self._starts.add(counts)
        except Unavailable:
            self._counts.update(counts)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Save every second, and at the end."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            await self.save()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(SAVED_EVERY_S)
            await self.save()
