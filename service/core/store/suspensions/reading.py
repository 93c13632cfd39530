"""Reading of records. Lists name unreadable ones and go on; nothing about them can be decided."""

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Unreadable
from service.core.store.suspensions.packing import Unpacked, unpack_record

_MOST_REMEMBERED = 1_000
_TURN_BYTES = 32_768  # so much JSON takes some milliseconds to read; then other tasks run

Model = TypeVar("Model", bound=BaseModel)
_LOG = structlog.get_logger(__name__)


class UnreadableRecord(NamedTuple):
    """A record that exists and is unreadable, and the reason; `run_id` where it was found through its run."""

    suspension_id: str
    reason: str
    run_id: str | None = None


def id_of(record: SuspensionRecord | UnreadableRecord) -> str:
    """Return the id of the suspension, readable or not."""
    return record.suspension_id if isinstance(record, UnreadableRecord) else record.id


def split_readable(
    records: Sequence[SuspensionRecord | UnreadableRecord],
) -> tuple[list[SuspensionRecord], list[UnreadableRecord]]:
    """Return the readable records, and the others."""
    readable = [record for record in records if isinstance(record, SuspensionRecord)]
    return readable, [record for record in records if isinstance(record, UnreadableRecord)]


def read_record(tenant: str, suspension_id: str, raw: bytes) -> Unpacked:
    """Return the record with this id; raises `Unreadable`."""
    try:
        stored = unpack_record(raw)
        if (stored.record.tenant, stored.record.id) != (tenant, suspension_id):
            raise Unreadable("It is the record of another suspension.")
    except Unreadable as error:
        raise describe_unreadable(UnreadableRecord(suspension_id, error.message)) from error
    return stored


def describe_unreadable(record: UnreadableRecord) -> Unreadable:
    """Return the error for an unreadable record."""
    return Unreadable(
        f"The record {record.suspension_id} cannot be read: {record.reason} Nothing about it can be decided, and "
        "nothing of it starts. Ask the operator to run `sayso doctor`.",
        suspension_id=record.suspension_id,
        reason=record.reason,
    )


def name_stored(kind: str, raw: bytes | str) -> str:
    """Return the name of a stored record without an id that can be read: its kind, and a digest of its content."""
    return f"{kind} {sha256(raw if isinstance(raw, bytes) else raw.encode()).hexdigest()[:12]}"


def try_read(model: type[Model], raw: bytes | str) -> Model | None:
    """Return a stored record; None for one that this version cannot read, which allows nothing and is logged."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        _LOG.error("record_unreadable", kind=model.__name__, reason=_describe_misfit(error))
        return None


def _describe_misfit(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}." if where else f"{first['msg']}."


class Readings:
    """Reads records of one tenant, and keeps a list of the unreadable ones."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._unreadable: dict[str, UnreadableRecord] = {}

    def read(self, suspension_id: str, raw: bytes) -> Unpacked:
        """Return the record; raises `Unreadable`, and logs that once."""
        try:
            stored = read_record(self._tenant, suspension_id, raw)
        except Unreadable as error:
            self._note(UnreadableRecord(suspension_id, str(error.facts["reason"])))
            raise
        self.forget(suspension_id)
        return stored

    async def read_several(
        self, suspension_ids: Iterable[str], raws: Iterable[bytes | None]
    ) -> list[SuspensionRecord | UnreadableRecord]:
        """Return the records that exist, in the given order, and name unreadable ones; other tasks run in between."""
        records: list[SuspensionRecord | UnreadableRecord] = []
        unread = _TURN_BYTES
        for suspension_id, raw in zip(suspension_ids, raws, strict=True):
            if raw is None:
                self.forget(suspension_id)
                continue
            try:
                stored = self.read(suspension_id, raw)
                records.append(stored.record)
                unread -= stored.size
            except Unreadable as error:
                records.append(UnreadableRecord(suspension_id, str(error.facts["reason"])))
                unread -= len(raw)
            if unread <= 0:
                unread = _TURN_BYTES
                await asyncio.sleep(0)
        return records

    def read_other(self, model: type[Model], raw: bytes | str, name: str) -> Model | None:
        """Return a stored record of another kind; None for an unreadable one, which is logged and listed once."""
        try:
            record = model.model_validate_json(raw)
        except ValidationError as error:
            self._note(UnreadableRecord(name, _describe_misfit(error)))
            return None
        self.forget(name)
        return record

    def require_other(self, model: type[Model], raw: bytes | str, name: str) -> Model:
        """Return a stored record of another kind; raises `Unreadable`, so that nothing overwrites an unreadable one."""
        record = self.read_other(model, raw, name)
        if record is None:
            raise Unreadable(
                f"The {name} cannot be read: {self._unreadable_reason(name)} It stays as it is. "
                "Ask the operator to run `sayso doctor`.",
                reason=self._unreadable_reason(name),
            )
        return record

    def forget(self, suspension_id: str) -> None:
        """Drop a record that is gone or readable again."""
        self._unreadable.pop(suspension_id, None)

    def doubts(self, suspension_id: str) -> bool:
        """Return whether the last read of the record failed."""
        return suspension_id in self._unreadable

    def list_unreadable(self) -> list[UnreadableRecord]:
        """Return the records whose last read failed."""
        return list(self._unreadable.values())

    def _unreadable_reason(self, name: str) -> str:
        known = self._unreadable.get(name)
        return known.reason if known is not None else "a later version may have written it."

    def _note(self, record: UnreadableRecord) -> None:
        known = self._unreadable.get(record.suspension_id)
        if known is None or known.reason != record.reason:
            _LOG.error("record_unreadable", suspension=record.suspension_id, reason=record.reason)
        if known is not None or len(self._unreadable) < _MOST_REMEMBERED:
            self._unreadable[record.suspension_id] = record
