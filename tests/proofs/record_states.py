"""Numbers for the distinct states of a record, with times relative to now.

Records that differ only in absolute time have the same number, so every transition is applied to them once.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sayso.core.canonical_json import canonical_json
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.transitions.execution import MAX_TRIES
from tests.proofs.invariants import ENDED, FINAL

MAX_REDRIVES = 2
"""The redrives that are distinguished: the delay grows in ten steps, and two show that it grows."""


class RecordStates:
    """Every distinct state, with one record and time for each."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._later: dict[tuple[int, int], int] = {}
        self.known: list[tuple[SuspensionRecord, int]] = []
        self.changes_in_ms: list[int | None] = []
        self.due: list[bool] = []
        self.ended: list[bool] = []

    def number(self, record: SuspensionRecord, now_ms: int) -> int:
        """Return the number of the state of `record` at `now_ms`."""
        receipt = record.receipt
        if receipt.redrives > MAX_REDRIVES or receipt.tries > MAX_TRIES:
            least = {"redrives": min(receipt.redrives, MAX_REDRIVES), "tries": min(receipt.tries, MAX_TRIES)}
            record = record.model_copy(update={"receipt": receipt.model_copy(update=least)})
        number = self._numbers.setdefault(_describe(record, now_ms), len(self.known))
        if number == len(self.known):
            self.known.append((record, now_ms))
            self.changes_in_ms.append(min((at - now_ms for at in _moments(record) if at > now_ms), default=None))
            self.due.append(record.due_at_ms is not None and record.due_at_ms <= now_ms)
            self.ended.append(record.status in ENDED)
        return number

    def later(self, number: int, passed_ms: int) -> int:
        """Return the number of the same record after a while."""
        found = self._later.get((number, passed_ms))
        if found is None:
            record, now_ms = self.known[number]
            found = number if self.ended[number] else self.number(record, now_ms + passed_ms)
            self._later[number, passed_ms] = found
        return found


def _describe(record: SuspensionRecord, now_ms: int) -> tuple[Any, ...]:
    def left(at_ms: int | None) -> int | None:
        return None if at_ms is None else max(0, at_ms - now_ms)

    if record.status in FINAL:
        return record.id, record.status, record.end.status if record.end else None
    lease, receipt = record.lease, record.receipt
    return (
        record.id,
        record.status,
        left(record.due_at_ms),
        (lease.holder, lease.attempt > 1, left(lease.until_ms)) if lease else None,
        tuple(_describe_item(item, left) for item in record.items),
        tuple((one.item_id, one.call_id) for one in record.journal),
        record.state.digest if record.state else None,
        (receipt.resumed_at_ms is None, receipt.redrives, receipt.tries, receipt.error is None),
    )


def _describe_item(item: Item, left: Callable[[int | None], int | None]) -> tuple[Any, ...]:
    outcome = item.outcome
    counted = tuple((one.by.id, one.action, canonical_json([one.args, one.value])) for one in item.decisions)
    soon = (item.undoable.by.id, item.undoable.action, left(item.undoable.until_ms)) if item.undoable else None
    decisions = counted, tuple(one.by.id for one in item.voided), soon
    if outcome is None:
        invited = tuple((known.codes, known.proof_hash, known.ended) for known in item.invitations)
        return decisions, left(item.terms.deadline_at_ms), item.reminded, item.escalated, item.seen_by is None, invited
    start_by = left(item.start_by_ms) if outcome.may_run else None
    return decisions, outcome.verdict, outcome.by.id, start_by, item.permit is None


def _moments(record: SuspensionRecord) -> Iterator[int]:
    """Return the times at which a record changes without a step."""
    if record.status in ENDED:
        return
    if record.due_at_ms is not None:
        yield record.due_at_ms
    if record.lease is not None and record.status is Status.RESUMING:
        yield record.lease.until_ms
    for item in record.items:
        if item.outcome is None:
            yield item.terms.deadline_at_ms
        elif item.outcome.may_run:
            yield item.start_by_ms
