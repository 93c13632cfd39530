"""Hand a run to a waiting worker within the change that makes it ready.

The same commit leases the run and redeems the permits of its approved calls. Only that worker may start them, and it
checks rules, revocations, freezes and times once more before it does.
"""

from typing import NamedTuple

from sayso.errors import Conflict
from sayso.records.items import Item
from sayso.records.suspensions import Change, Intent, Status, SuspensionRecord
from sayso.transitions.execution import Fence, lease, redeem, release, return_permits


class WaitingWorker(NamedTuple):
    """A worker that takes runs at once: its name as a holder of leases, their length, and its job."""

    holder: str
    lease_ms: int
    job_id: str = ""

    @property
    def name(self) -> str:
        """The name under which it is announced in the store."""
        return f"{self.holder} {self.lease_ms} {self.job_id}"

    @classmethod
    def read(cls, name: str) -> "WaitingWorker":
        """Return the worker of a name."""
        holder, lease_ms, job_id = name.split(" ", 2)
        return cls(holder, int(lease_ms), job_id)


def hand_over(change: Change, worker: WaitingWorker, now_ms: int) -> Change:
    """Return the change with its ready run leased to `worker`, and the permits of its approved calls redeemed.

    With a denied call, only the worker can tell which others run, so no permit is redeemed. A change that makes no run
    ready, or one with calls in doubt, is returned as it is.
    """
    record, (holder, lease_ms, job_id) = change.record, worker
    if not change.ready or change.following is not None or not _can_be_handed(record):
        return change
    leased = lease(record, holder, lease_ms, now_ms, job_id or None)
    taken = leased.record.lease
    assert taken is not None  # noqa: S101  a decided run has just been leased
    fence = Fence(holder, taken.attempt, lease_ms)
    items = record.items if record.approved else ()  # a run that begins has none
    intents = tuple(_journal(leased.record, fence, item, now_ms) for item in items)
    try:
        redeemed = redeem(leased.record, fence, intents, (), now_ms) if intents else Change(leased.record)
    except Conflict:
        return change  # its worker's own step raises it again, and reports it
    events = (*change.events, *leased.events, *redeemed.events)
    return change._replace(record=redeemed.record, events=events, ready=False, handed_to=worker.name)


def take_back(record: SuspensionRecord, fence: Fence, now_ms: int) -> Change:
    """Return a handed run to the ready list, with its permits: its worker never got it, so nothing has started."""
    returned = return_permits(record, fence, {intent.index for intent in record.journal}, now_ms)
    released = release(returned.record, fence, "its worker did not take it", now_ms)
    return released._replace(events=returned.events + released.events, released=returned.released)


def forget_start(record: SuspensionRecord) -> SuspensionRecord:
    """Return a handed record as it was before its permits were redeemed, to plan its calls again."""
    items = tuple(item.model_copy(update={"permit": None}) if item.permit else item for item in record.items)
    return record.model_copy(update={"items": items, "journal": ()})


def _can_be_handed(record: SuspensionRecord) -> bool:
    """Whether the record alone tells which calls start: not for other frameworks, nor after a call in doubt."""
    resumer = record.resume.resumer
    alone = resumer == "runner" or (resumer == "calls" and record.state is None)
    plain = not record.journal and not any(item.doubt or item.permit or item.is_void for item in record.items)
    by_worker = record.resume.mode == "worker" and record.status is Status.DECIDED
    return by_worker and alone and plain


def _journal(record: SuspensionRecord, fence: Fence, item: Item, now_ms: int) -> Intent:
    return Intent(
        item_id=item.item_id,
        call_id=item.call_id,
        index=item.index,
        tool=item.tool.name,
        idempotency_key=f"{record.id}:{item.item_id}",
        idempotent=item.tool.idempotent,
        attempt=fence.attempt,
        holder=fence.holder,
        begun_at_ms=now_ms,
    )
