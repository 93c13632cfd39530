"""The invariants of one change of one suspension."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sayso.core.canonical_json import digest_json
from sayso.core.records.decisions import ActorKind, DecisionAction
from sayso.core.records.events import EventType
from sayso.core.records.items import Item, digest_item
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.legal import LEGAL
from sayso.core.transitions.permits import approved_args

ENDED = (Status.RESUMED, Status.CANCELLED, Status.FAILED)
FINAL = (Status.RESUMED, Status.CANCELLED)
"""The final statuses; only a failed run can be revived."""

_TABLE_EVENTS = frozenset().union(*(step.events for step in LEGAL.values()))
"""The event kinds of the table; all others come from the run itself."""

_NOT_ANNOUNCED = (
    *("record_deliveries", "take_second_look", "note_undone", "write_note", "redrive", "hold", "shift_deadlines"),
)
"""Steps of decided suspensions that add nothing to the ready list."""

_COMBINED = {"hand_over": ("lease", "redeem"), "take_back": ("return_permits", "release")}
"""Steps that one commit takes together."""

_RESUMING = ("hand_over", "redeem", "checkpoint", "suspend_again", "settle")


class Step(NamedTuple):
    """One step: the transition, its record, its result, its time and its lease."""

    verb: str
    before: SuspensionRecord | None
    change: Change
    now_ms: int
    fence: Fence | None = None


def find_violation(step: Step) -> str | None:
    """Return the broken invariant, or None."""
    return next(_find_violations(step), None)


def _find_violations(step: Step) -> Iterator[str]:
    before, after = step.before, step.change.record
    if after is before:
        if step.change.events or step.change.ready or step.change.following:
            yield "a step without a change has events or a following suspension"
        return
    yield from _check_table(step)
    yield from _check_schedule(after, held=step.verb == "hold")
    yield from _check_events(step)
    if step.change.following is not None:
        yield from _check_schedule(step.change.following)
        if (after.following_id, after.id) != (step.change.following.id, step.change.following.previous_id):
            yield "a suspension and the following one do not link to each other"
    if before is not None:
        yield from _check_record(step, before, after)
        for old, new in zip(before.items, after.items, strict=True):
            yield from _check_item(step, before, old, new)


def rows_of(verb: str, after: SuspensionRecord) -> tuple[str, ...]:
    """Return the rows of the table that a step takes: `keep_time` takes four, and the last postponement gives up."""
    if verb == "keep_time":
        return ("take_effect", "expire", "escalate", "remind")
    if verb in _COMBINED:
        return _COMBINED[verb]
    return ("give_up",) if verb == "postpone" and after.status is Status.FAILED else (verb,)


def _check_table(step: Step) -> Iterable[str]:
    """I7: no step outside the table."""
    status = step.before.status if step.before is not None else None
    after = step.change.record
    rows = [LEGAL[name] for name in rows_of(step.verb, after)]
    if not any(status in row.sources and after.status in row.targets for row in rows):
        yield f"{step.verb} led from {status} to {after.status}"
    events = {event.type for event in step.change.events} & _TABLE_EVENTS
    allowed = frozenset().union(*(row.events for row in rows))
    resumed = {EventType.RUN_RESUMED} if step.verb in _RESUMING else set()
    if not events <= allowed | resumed:
        yield f"{step.verb} wrote {', '.join(sorted(events - allowed))}"


def _check_schedule(record: SuspensionRecord, *, held: bool = False) -> Iterable[str]:
    """I5, I12: a waiting record is on the schedule, an ended one is not, and an end is final."""
    if (record.due_at_ms is None) != (record.status in ENDED):
        yield f"a suspension that is {record.status} has the due time {record.due_at_ms}"
    if not held and record.status is Status.PENDING and (record.due_at_ms or 0) > (record.deadline_at_ms or 0):
        yield "a pending suspension is due only after its deadline"
    if record.status in (Status.CANCELLED, Status.FAILED) and record.end is None:
        yield f"a suspension is {record.status} and its run has no end"
    if record.status is Status.RESUMED and (record.end is None) == (record.following_id is None):
        yield "a resumed suspension has neither an end nor a next one, or both"
    if record.status is Status.RESUMING and record.lease is None:
        yield "a resuming suspension has no lease"
    if record.status in (Status.DECIDED, Status.RESUMING, Status.RESUMED) and any(item.open for item in record.items):
        yield f"a suspension is {record.status} with an item still open"


def _check_events(step: Step) -> Iterable[str]:
    """I1, I10: `decided` and `run_resumed` are recorded once, and a ready run is announced to the workers."""
    before, after = step.before, step.change.record
    events = [event.type for event in step.change.events]
    for one in (after, step.change.following):
        if (
            one is not None
            and one.status is Status.DECIDED
            and step.verb not in _NOT_ANNOUNCED
            and not step.change.ready
        ):
            yield "a suspension is decided and no worker is notified"
    was_decided = before is not None and before.status is not Status.PENDING
    now_decided = after.status is Status.DECIDED and bool(after.items) and not was_decided
    if step.change.following is None and (events.count(EventType.DECIDED) == 1) != now_decided:
        yield "`decided` is not recorded exactly when the last item closes"
    was_resumed = before is not None and before.receipt.resumed_at_ms is not None
    now_resumed = after.receipt.resumed_at_ms is not None and not was_resumed
    if events.count(EventType.RUN_RESUMED) != now_resumed:
        yield "`run_resumed` is not recorded exactly once per suspension"


def _without_deliveries(record: SuspensionRecord) -> SuspensionRecord:
    """Return a record without its cards' deliveries, the only part that changes after the end."""
    items = tuple(item.model_copy(update={"deliveries": ()}) for item in record.items)
    return record.model_copy(update={"items": items})


def _check_record(step: Step, before: SuspensionRecord, after: SuspensionRecord) -> Iterable[str]:
    looked_again = before.model_copy(update={"updated_at_ms": after.updated_at_ms})
    kept = looked_again if step.verb in ("take_second_look", "note_undone") else before
    if before.status in FINAL and _without_deliveries(kept) != _without_deliveries(after):
        yield f"a suspension that was {before.status} was changed by {step.verb}"
    if after.updated_at_ms < before.updated_at_ms:
        yield "the update time of a record went backwards"
    held, holds = before.lease, after.lease
    if step.fence is not None and (
        held is None or (held.holder, held.attempt) != (step.fence.holder, step.fence.attempt)
    ):
        yield f"{step.verb} was committed by a worker whose lease is over"
    if step.verb in ("lease", "hand_over") and holds is not None:
        if before.status is Status.RESUMING and held is not None and step.now_ms < held.until_ms:
            yield "two workers hold one lease"
        if holds.attempt != (held.attempt if held else 0) + 1:
            yield "a lease does not have a new attempt"
    elif step.verb not in ("lease", "hand_over") and (held is None) != (holds is None):
        yield f"{step.verb} added or removed a lease"


def _check_item(step: Step, before: SuspensionRecord, old: Item, new: Item) -> Iterable[str]:
    if old.outcome is not None and new.outcome != old.outcome:
        yield f"the outcome of {old.item_id} changed"
    yield from _check_kept(step, old, new)
    for decision in new.decisions[len(old.decisions) :]:
        human = decision.by.kind is ActorKind.HUMAN
        made = old.undoable.decision if old.undoable is not None else None
        if made == decision:
            yield from _check_effect(step, old)
        elif human == (step.now_ms >= old.terms.deadline_at_ms):
            yield f"{decision.by.id} decided {old.item_id} on the wrong side of its deadline"
        if human and old.terms.no_self_approval and decision.by.id == before.run.owner:
            yield f"the owner decided {old.item_id}"
        if decision.args_digest != old.digest:
            yield f"a decision on {old.item_id} has another digest"
    if old.open and not new.open and len(new.decisions) == len(old.decisions):
        yield from _check_report(step, old, new)
    people = [decision.by.id for decision in new.decisions]
    if len(people) != len(set(people)):
        yield f"a reviewer decided {old.item_id} twice"
    if _redemption(new) != _redemption(old):
        yield from _check_permit(step, before, old)


def _check_effect(step: Step, old: Item) -> Iterable[str]:
    """A decision takes effect when it can be undone no longer, and that is by the deadline."""
    until_ms = old.undoable.until_ms if old.undoable is not None else 0
    if step.now_ms < until_ms:
        yield f"a decision on {old.item_id} took effect while it could be undone"
    if until_ms > old.terms.deadline_at_ms:
        yield f"a decision on {old.item_id} takes effect after its deadline"


def _check_kept(step: Step, old: Item, new: Item) -> Iterable[str]:
    """No decision is lost or removed from a closed item. A voided one is kept as such and counts for no quorum."""
    voided = {one.id for one in new.voided}
    is_voiding = step.verb in ("void_decisions", "retract", "store_preview") and old.open
    kept = [one for one in old.decisions if one.id not in voided] if is_voiding else [*old.decisions]
    replaced = step.verb == "ask_again" and new.open and not new.decisions
    if [*new.decisions[: len(kept)]] != kept and not replaced:
        yield f"a decision on {old.item_id} was lost"
    if new.voided[: len(old.voided)] != old.voided:
        yield f"a voided decision on {old.item_id} was forgotten"
    if step.verb == "retract" and len(new.voided) - len(old.voided) > 1:
        yield f"a decision of another was taken back from {old.item_id}"
    if voided & {one.id for one in new.decisions}:
        yield f"a voided decision on {old.item_id} still counts"
    if old.undoable is not None and new.undoable is None:
        gone = old.undoable.id not in {*voided, *(one.id for one in new.decisions)}
        if gone and new.open:
            yield f"a decision on {old.item_id} that could be undone was lost"
    outcome = new.outcome
    if old.outcome is None and outcome is not None and outcome.may_run and outcome.by.kind is ActorKind.HUMAN:
        in_favour = [one for one in new.decisions if one.action is not DecisionAction.DENY]
        if len(in_favour) < new.terms.quorum.approve:
            yield f"{old.item_id} was approved without its quorum"
        said, args = new.confirmation, outcome.args if outcome.args is not None else new.tool.args
        if new.terms.confirm_by and (said is None or not said.confirmed or said.args_digest != digest_json(args)):
            yield f"{old.item_id} was approved without its confirmation"


def _check_report(step: Step, old: Item, new: Item) -> Iterable[str]:
    """Without a new decision, the acting user has confirmed, or the worker of the call in doubt has reported."""
    by = new.outcome.by.id if new.outcome is not None else None
    if step.verb == "confirm" and new.confirmation is not None and new.confirmation != old.confirmation:
        return
    if step.verb != "report" or old.doubt is None or old.doubt.holder != by:
        yield f"{step.verb} closed {old.item_id} without a decision"


def _redemption(item: Item) -> tuple[int, int, str] | None:
    return (item.permit.redeemed_at_ms, item.permit.attempt, item.permit.holder) if item.permit is not None else None


def _check_permit(step: Step, before: SuspensionRecord, old: Item) -> Iterable[str]:
    """I3, I4: a permit is redeemed once, in time, for exactly the approved arguments."""
    outcome = old.outcome
    if step.verb in ("return_permits", "take_back"):
        if old.permit is None or before.lease is None or old.permit.attempt != before.lease.attempt:
            yield f"a permit of {old.item_id} was returned that another attempt redeemed"
        return
    status = Status.DECIDED if step.verb == "hand_over" else Status.RESUMING
    if step.verb not in ("redeem", "hand_over") or before.status is not status:
        yield f"{step.verb} redeemed the permit of {old.item_id} while the suspension was {before.status}"
    if old.permit is not None and not old.tool.idempotent:
        yield f"the permit of {old.item_id} was redeemed twice"
    if outcome is None or not outcome.may_run:
        yield f"{old.item_id} has no approval, and its permit was redeemed"
    elif old.permit is None and step.now_ms >= old.start_by_ms:
        yield f"the permit of {old.item_id} was redeemed after its deadline"
    elif outcome.digest != digest_item(before.binding, old.item_id, old, approved_args(old), old.terms):
        yield f"{old.item_id} runs with other arguments than were decided"
