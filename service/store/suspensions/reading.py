"""Read stored records, and remember which of them cannot be read.

One unreadable record never hides the others: lists pass over it and name it, and nothing about it can be decided.
"""

from collections.abc import Iterable
from typing import NamedTuple

import structlog

from sayso.errors import Unreadable
from sayso.records.events import TrailHead
from sayso.records.suspensions import SuspensionRecord
from service.store.suspensions.packing import unpack_record

_MOST_REMEMBERED = 1_000

_LOG = structlog.get_logger(__name__)


class UnreadableRecord(NamedTuple):
    """A record that is there and cannot be read, and why. `run_id` is known where it was found through its run."""

    suspension_id: str
    reason: str
    run_id: str | None = None


class Stored(NamedTuple):
    """A record with the head of its run's trail, and the id of the commit that saved it."""

    record: SuspensionRecord
    head: TrailHead
    commit_id: str


def id_of(found: SuspensionRecord | UnreadableRecord) -> str:
    """Return the id of the suspension, readable or not."""
    return found.suspension_id if isinstance(found, UnreadableRecord) else found.id


def split_readable(
    found: Iterable[SuspensionRecord | UnreadableRecord],
) -> tuple[list[SuspensionRecord], list[UnreadableRecord]]:
    """Return the records, and apart from them what cannot be read."""
    every = list(found)
    return (
        [one for one in every if isinstance(one, SuspensionRecord)],
        [one for one in every if isinstance(one, UnreadableRecord)],
    )


def read_record(tenant: str, suspension_id: str, raw: bytes) -> Stored:
    """Return the record that is stored under this id; raises `Unreadable`."""
    try:
        stored = Stored(*unpack_record(raw))
        if (stored.record.tenant, stored.record.id) != (tenant, suspension_id):
            raise Unreadable("It is the record of another suspension.")
    except Unreadable as error:
        raise describe_unreadable(UnreadableRecord(suspension_id, error.message)) from error
    return stored


def describe_unreadable(found: UnreadableRecord) -> Unreadable:
    """Return the error that tells of the record: which one, why, and what to do."""
    return Unreadable(
        f"The record {found.suspension_id} cannot be read: {found.reason} Nothing about it can be decided, and nothing "
        "of it starts. Ask the operator to run `sayso doctor`.",
        suspension_id=found.suspension_id,
        reason=found.reason,
    )


class Readings:
    """What this process has read: it remembers the records that could not be, until they can be or are gone."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._unreadable: dict[str, UnreadableRecord] = {}

    def read(self, suspension_id: str, raw: bytes) -> Stored:
        """Return the record; raises `Unreadable`, and logs that once."""
        try:
            stored = read_record(self._tenant, suspension_id, raw)
        except Unreadable as error:
            self._note(UnreadableRecord(suspension_id, str(error.facts["reason"])))
            raise
        self.forget(suspension_id)
        return stored

    def try_read(self, suspension_id: str, raw: bytes) -> SuspensionRecord | UnreadableRecord:
        """Return the record, or why it cannot be read."""
        try:
            return self.read(suspension_id, raw).record
        except Unreadable as error:
            return UnreadableRecord(suspension_id, str(error.facts["reason"]))

    def forget(self, suspension_id: str) -> None:
        """Note that the record is gone, or can be read again."""
        self._unreadable.pop(suspension_id, None)

    def doubts(self, suspension_id: str) -> bool:
        """Tell whether this process could not read the record when it last tried."""
        return suspension_id in self._unreadable

    def list_unreadable(self) -> list[UnreadableRecord]:
        """Return the records that this process could not read when it last tried."""
        return list(self._unreadable.values())

    def _note(self, found: UnreadableRecord) -> None:
        known = self._unreadable.get(found.suspension_id)
        if known is None or known.reason != found.reason:
            _LOG.error("record_unreadable", suspension=found.suspension_id, reason=found.reason)
        if known is not None or len(self._unreadable) < _MOST_REMEMBERED:
            self._unreadable[found.suspension_id] = found
