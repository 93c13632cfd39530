"""Transitions of a worker's run: lease, redeem, checkpoint, then suspend again, settle or give up.

A run is handed to a waiting worker within the change that makes it ready: the same commit leases it and redeems the
permits of its approved calls. Only that worker may start them, after it has checked rules, revocations, freezes and
times once more.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor, Permit
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item, ItemDraft
from sayso.core.records.judgements import place_charges
from sayso.core.records.run_state import SealedState
from sayso.core.records.suspensions import (
    DUE_AGAIN_MS,
    Change,
    Intent,
    Lease,
    RunEnd,
    RunStatus,
    Status,
    SuspensionRecord,
)
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.closing import END_EVENTS, end_suspension, follow, note_resumed, stop
from sayso.core.transitions.deciding import find_item, suspend
from sayso.core.transitions.inquiring import mark_delivered
from sayso.core.transitions.legal import check_step
from sayso.core.transitions.permits import redeem_permit, shows_effect
from sayso.errors import Conflict, IllegalTransition, LeaseHeld, StaleAttempt

MAX_TRIES = 5  # the limit of resumes before the run is given up; an admin can revive it
_MAX_DUE_AGAIN_MS = 10 * DUE_AGAIN_MS  # the longest delay before a decided run is due again
_REQUEUED = "No worker has leased it yet; it was queued again."
_QUEUED = "No worker has leased it yet; it is queued."


class Fence(NamedTuple):
    """One worker's claim to one attempt; each step extends the lease by `lease_ms`.

    Steps of an expired lease are refused. `step` names the step, so that a repeated step takes effect once.
    """

    holder: str
    attempt: int
    lease_ms: int
    step: str = ""


def lease(
    record: SuspensionRecord, holder: str, lease_ms: int, now_ms: int, job_id: str | None = None, step: str = ""
) -> Change:
    """Lease the run to one worker, who may ask again; raises `LeaseHeld` while another worker holds the lease."""
    check_step(record, "lease")
    if record.resume.mode == "poll":
        raise IllegalTransition("This run is executed by its client, not by a worker.")
    held = record.lease
    if record.status is Status.RESUMING and held is not None and now_ms < held.until_ms:
        if held.holder == holder:
            return Change(record)
        raise LeaseHeld(f"{held.holder} has leased this run until {iso_utc(held.until_ms)}.", holder=held.holder)
    attempt, until_ms = (held.attempt if held else 0) + 1, now_ms + lease_ms
    taken = Lease(holder=holder, attempt=attempt, until_ms=until_ms, step=step)
    stage = {"leased_at_ms": now_ms, "job_id": job_id, "tries": record.receipt.tries + 1}
    update = {"status": Status.RESUMING, "updated_at_ms": now_ms, "lease": taken, "due_at_ms": until_ms}
    update |= {"waits_for": (), "receipt": record.receipt.model_copy(update=stage)}
    data = {"suspension_id": record.id, "attempt": attempt, "worker": holder}
    return Change(record.model_copy(update=update), (Event(EventType.RUN_RESUMING, data),))


def renew(record: SuspensionRecord, fence: Fence, now_ms: int) -> Change:
    """Extend the lease."""
    return Change(_continue(record, "renew", fence, now_ms))


def redeem(
    record: SuspensionRecord, fence: Fence, intents: tuple[Intent, ...], events: tuple[Event, ...], now_ms: int
) -> Change:
    """Journal the calls that are about to start, and redeem their permits; raises as `redeem_permit` does."""
    record = _continue(record, "redeem", fence, now_ms)
    intents = tuple(_charge(record, intent, now_ms) for intent in intents)
    items = {item.item_id: item for item in record.items}
    redeemed: list[Event] = []
    for intent in intents:
        if intent.item_id is None:
            continue
        permit = Permit(redeemed_at_ms=now_ms, attempt=fence.attempt, holder=fence.holder)
        item = redeem_permit(record, find_item(record, intent.item_id), permit, now_ms, intent.in_vain)
        items[item.item_id] = item
        data = {"item_id": item.item_id, "call_id": item.call_id, "digest": item.outcome.digest if item.outcome else ""}
        redeemed.append(Event(EventType.PERMIT_REDEEMED, {**data, "attempt": fence.attempt}))
    begun = {intent.index for intent in intents}
    kept = tuple(intent for intent in record.journal if intent.index not in begun)
    record = record.model_copy(update={"items": tuple(items.values()), "journal": (*kept, *intents)})
    return note_resumed(Change(record, (*events, *redeemed)), now_ms)


def return_permits(record: SuspensionRecord, fence: Fence, unused: Collection[int], now_ms: int) -> Change:
    """Return the permits of journalled calls that never started, by index, and unjournal and uncount these calls."""
    record = _continue(record, "return_permits", fence, now_ms)
    returned = [intent for intent in record.journal if intent.index in unused and intent.attempt == fence.attempt]
    journal = tuple(intent for intent in record.journal if intent not in returned)
    ids = {intent.item_id for intent in returned}
    back = [item for item in record.items if item.item_id in ids and item.permit is not None]
    items = tuple(item.model_copy(update={"permit": None}) if item in back else item for item in record.items)
    rows = [{"item_id": item.item_id, "call_id": item.call_id, "attempt": fence.attempt} for item in back]
    events = tuple(Event(EventType.PERMIT_RETURNED, row) for row in rows)
    released = tuple(charge for intent in returned for charge in intent.charges)
    return Change(record.model_copy(update={"items": items, "journal": journal}), events, released=released)


def checkpoint(
    record: SuspensionRecord, fence: Fence, state: SealedState, events: tuple[Event, ...], now_ms: int
) -> Change:
    """Save the state and the events of the run. No call is under way."""
    record = _note_endings(_continue(record, "checkpoint", fence, now_ms), events, now_ms)
    record = record.model_copy(update={"journal": (), "state": state.ref})
    return note_resumed(Change(record, events, state=state), now_ms)


def note_results(record: SuspensionRecord, fence: Fence, results: Mapping[int, ToolResult], now_ms: int) -> Change:
    """Save the results of calls, by index, while others of their batch still run: their worker may be lost first."""
    record = _continue(record, "note_results", fence, now_ms)
    journal = tuple(
        intent.model_copy(update={"result": results[intent.index]}) if intent.index in results else intent
        for intent in record.journal
    )
    return Change(record.model_copy(update={"journal": journal}))


def postpone(record: SuspensionRecord, fence: Fence, error: str, now_ms: int, *, is_final: bool = False) -> Change:
    """Postpone a failed resume, longer each time; give up after the last, or if `is_final` and no call is in doubt."""
    if is_final and all(intent.result is not None for intent in record.journal):
        return give_up(record, fence, error, (), now_ms)
    tries = record.receipt.tries
    if tries >= MAX_TRIES:
        return give_up(record, fence, f"{error} (given up after {tries} tries)", (), now_ms)
    again_at_ms = now_ms + 1000 * 2**tries
    record = _continue(record, "postpone", fence, now_ms, again_at_ms)
    receipt = record.receipt.model_copy(update={"error": error})
    data = {"attempt": fence.attempt, "error": error, "again_at_ms": again_at_ms}
    return Change(record.model_copy(update={"receipt": receipt}), (Event(EventType.RUN_POSTPONED, data),))


def redrive(record: SuspensionRecord, now_ms: int, queued_since_ms: int | None = None) -> Change:
    """Put a due run without a worker, or with an expired lease, on the ready list again.

    `queued_since_ms` is when the oldest entry of the ready list was put there. A decided run that was queued later is
    still in the list. A run that lost its worker `MAX_TRIES` times is given up: it may be the cause.
    """
    check_step(record, "redrive")
    if record.due_at_ms is None or now_ms < record.due_at_ms:
        return Change(record)
    if record.status is Status.RESUMING and record.receipt.tries >= MAX_TRIES:
        return _fail(record, f"Its worker was lost {record.receipt.tries} times, so it was given up.", (), now_ms)
    enqueued_at_ms = record.receipt.enqueued_at_ms or 0
    queued = queued_since_ms is not None and queued_since_ms <= enqueued_at_ms <= now_ms
    if record.status is Status.DECIDED and queued:
        due_at_ms = now_ms + min(max(now_ms - enqueued_at_ms, DUE_AGAIN_MS), _MAX_DUE_AGAIN_MS)
        receipt = record.receipt.model_copy(update={"error": _QUEUED})
        return Change(record.model_copy(update={"updated_at_ms": now_ms, "due_at_ms": due_at_ms, "receipt": receipt}))
    redrives = record.receipt.redrives + 1
    error = _REQUEUED if record.status is Status.DECIDED else record.receipt.error
    receipt = record.receipt.model_copy(update={"redrives": redrives, "enqueued_at_ms": now_ms, "error": error})
    due_at_ms = now_ms + min(DUE_AGAIN_MS * redrives, _MAX_DUE_AGAIN_MS)
    update = {"updated_at_ms": now_ms, "due_at_ms": due_at_ms, "receipt": receipt}
    return Change(record.model_copy(update=update), ready=True)


def suspend_again(
    record: SuspensionRecord,
    fence: Fence,
    following: SuspensionRecord,
    drafts: tuple[ItemDraft, ...],
    state: SealedState,
    events: tuple[Event, ...],
    now_ms: int,
) -> Change:
    """End this suspension and start the run's next one, in one commit."""
    record = _note_endings(_continue(record, "suspend_again", fence, now_ms), events, now_ms)
    suspended = suspend(following.model_copy(update={"state": state.ref, **follow(record)}), drafts, now_ms)
    noted = note_resumed(Change(end_suspension(record, now_ms, {"following_id": following.id}), events), now_ms)
    events = noted.events + suspended.events
    return Change(noted.record, events, following=suspended.record, state=state, ready=suspended.ready)


def settle(record: SuspensionRecord, fence: Fence, end: RunEnd, events: tuple[Event, ...], now_ms: int) -> Change:
    """End the run with its own result."""
    if record.status is Status.RESUMED and record.lease is not None and record.lease.holder == fence.holder:
        return Change(record)
    record = _note_endings(_continue(record, "settle", fence, now_ms), events, now_ms)
    noted = note_resumed(Change(end_suspension(record, now_ms, {"end": end}), events), now_ms)
    ended = Event(END_EVENTS[end.status], {"result": end.result, "error": end.error})
    return Change(noted.record, (*noted.events, ended))


def give_up(record: SuspensionRecord, fence: Fence, error: str, events: tuple[Event, ...], now_ms: int) -> Change:
    """Fail the run because it cannot continue; its decisions stay on the record."""
    return _fail(_continue(record, "give_up", fence, now_ms), error, events, now_ms)


def release(
    record: SuspensionRecord, fence: Fence, reason: str, now_ms: int, waits_for: tuple[str, ...] = ()
) -> Change:
    """Return the run untouched, ready unless it `waits_for` frozen tools; raises `IllegalTransition` during a call."""
    record = _continue(record, "release", fence, now_ms)
    if record.journal:
        raise IllegalTransition("Calls of this run are under way. It cannot be released.")
    tries = max(0, record.receipt.tries - 1)
    enqueued_at_ms = record.receipt.enqueued_at_ms if waits_for else now_ms
    error = reason if waits_for else record.receipt.error
    receipt = record.receipt.model_copy(update={"tries": tries, "enqueued_at_ms": enqueued_at_ms, "error": error})
    update = {"status": Status.DECIDED, "due_at_ms": now_ms + DUE_AGAIN_MS, "receipt": receipt, "waits_for": waits_for}
    released = Event(EventType.RUN_RELEASED, {"attempt": fence.attempt, "reason": reason})
    return Change(record.model_copy(update=update), (released,), ready=not waits_for)


def revive(record: SuspensionRecord, by: Actor, now_ms: int) -> Change:
    """Make a failed run ready again. Decisions stay, and permits keep their times; calls are counted as they start."""
    check_step(record, "revive")
    if record.erasure is not None:
        raise Conflict("The contents of this run were erased, so it cannot go on. Start a new run.")
    receipt = record.receipt.model_copy(update={"tries": 0, "redrives": 0, "enqueued_at_ms": now_ms})
    items = tuple(item if item.permit else item.model_copy(update={"charges": ()}) for item in record.items)
    update = {"status": Status.DECIDED, "updated_at_ms": now_ms, "receipt": receipt, "end": None, "items": items}
    update["due_at_ms"] = now_ms + DUE_AGAIN_MS
    revived = Event(EventType.RUN_REVIVED, {"by": by.model_dump(mode="json")})
    return Change(record.model_copy(update=update), (revived,), ready=True)


def _charge(record: SuspensionRecord, intent: Intent, now_ms: int) -> Intent:
    """Return the intent with its charges placed. A call that is counted already adds none."""
    earlier = next((other for other in record.journal if other.index == intent.index), None)
    if earlier is not None:
        return intent.model_copy(update={"charges": earlier.charges})
    counted = any(item.charges for item in record.items if item.item_id == intent.item_id)
    return intent.model_copy(update={"charges": () if counted else place_charges(intent.charges, now_ms)})


def _fail(record: SuspensionRecord, error: str, events: tuple[Event, ...], now_ms: int) -> Change:
    failed = Event(EventType.RUN_FAILED, {"result": None, "error": error})
    end = RunEnd(status=RunStatus.FAILED, error=error)
    return Change(stop(record, Status.FAILED, end, now_ms), (*events, failed))


def _continue(
    record: SuspensionRecord, step: str, fence: Fence, now_ms: int, until_ms: int | None = None
) -> SuspensionRecord:
    held = record.lease
    if held is None or held.holder != fence.holder or held.attempt != fence.attempt:
        raise StaleAttempt(holder=fence.holder, attempt=fence.attempt)
    check_step(record, step)
    until_ms = now_ms + fence.lease_ms if until_ms is None else until_ms
    extended = held.model_copy(update={"until_ms": until_ms, "step": fence.step or held.step})
    return record.model_copy(update={"updated_at_ms": now_ms, "lease": extended, "due_at_ms": until_ms})


def _note_endings(record: SuspensionRecord, events: tuple[Event, ...], now_ms: int) -> SuspensionRecord:
    record = mark_delivered(record, events, now_ms) if record.waiting_notes else record
    begun = {intent.item_id for intent in record.journal if intent.item_id is not None}
    if not begun:
        return record
    completed = [event.data for event in events if event.type is EventType.TOOL_COMPLETED]
    ended = {data.get("index"): data.get("success") for data in completed}

    def note(item: Item) -> Item:
        if item.permit is None or item.item_id not in begun or item.index not in ended:
            return item
        ending = {"ended_at_ms": now_ms, "success": bool(ended[item.index])}
        return item.model_copy(update={"permit": item.permit.model_copy(update=ending)})

    return record.model_copy(update={"items": tuple(map(note, record.items))})


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
        holder, lease_ms, job_id = name.split(" ", 2)
        return cls(holder, int(lease_ms), job_id)


def hand_over(change: Change, worker: WaitingWorker, now_ms: int) -> Change:
    """Return the change with its ready run leased to `worker`, and the permits of its approved calls redeemed.

    With a denied call, only the worker can tell which others run, so no permit is redeemed. A change that makes no run
    ready, or one with calls in doubt or with previews, is returned as it is.
    """
    record, (holder, lease_ms, job_id) = change.record, worker
    # The record alone tells which calls start, but for other frameworks, and after a call in doubt.
    alone = record.resume.resumer == "runner" or (record.resume.resumer == "calls" and record.state is None)
    bare = not any(item.doubt or item.permit or item.is_void or shows_effect(item) for item in record.items)
    plain = not record.journal and bare
    by_worker = record.resume.mode == "worker" and record.status is Status.DECIDED
    if not change.ready or change.following is not None or not (by_worker and alone and plain):
        return change
    leased = lease(record, holder, lease_ms, now_ms, job_id or None)
    taken = leased.record.lease
    assert taken is not None  # noqa: S101  a decided run has just been leased
    fence = Fence(holder, taken.attempt, lease_ms)
    items = record.items if record.approved else ()  # a run that begins has none
    intents = describe_starts(record, items, fence, now_ms)
    try:
        redeemed = redeem(leased.record, fence, intents, (), now_ms) if intents else Change(leased.record)
    except Conflict:
        return change  # its worker's own step raises it again, and reports it
    events = (*change.events, *leased.events, *redeemed.events)
    return change._replace(record=redeemed.record, events=events, ready=False, handed_to=worker.name)


def describe_starts(record: SuspensionRecord, items: Iterable[Item], fence: Fence, now_ms: int) -> tuple[Intent, ...]:
    """Return the intents of items whose calls start together."""
    return tuple(
        Intent(
            item_id=item.item_id,
            call_id=item.call_id,
            index=item.index,
            tool=item.tool.name,
            idempotency_key=item.doubt.idempotency_key if item.doubt is not None else f"{record.id}:{item.item_id}",
            idempotent=item.tool.idempotent,
            attempt=fence.attempt,
            holder=fence.holder,
            begun_at_ms=now_ms,
        )
        for item in items
    )


def take_back(record: SuspensionRecord, fence: Fence, now_ms: int) -> Change:
    """Return a handed run to the ready list, with its permits: its worker never got it, so nothing has started."""
    returned = return_permits(record, fence, {intent.index for intent in record.journal}, now_ms)
    released = release(returned.record, fence, "its worker did not take it", now_ms)
    return released._replace(events=returned.events + released.events, released=returned.released)


def forget_start(record: SuspensionRecord) -> SuspensionRecord:
    """Return a handed record as it was before its permits were redeemed, to plan its calls again."""
    items = tuple(item.model_copy(update={"permit": None}) if item.permit else item for item in record.items)
    return record.model_copy(update={"items": items, "journal": ()})
