"""States of runs, from the store or from the memory of the worker that saved them.

A state is found by its digest, so one that another process has replaced is read from the store.
"""

from collections import OrderedDict
from typing import NamedTuple

from sayso.core.records.run_state import SealedState, StateRef, open_state
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import SaysoError
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
