"""The invariants of one change of one suspension."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sayso.records.decisions import ActorKind
from sayso.records.events import EventType
from sayso.records.items import Item, digest_item
from sayso.records.suspensions import Change, Status, SuspensionRecord
from sayso.transitions.execution import Fence
from sayso.transitions.permits import approved_args
from sayso.transitions.table import LEGAL

ENDED = (Status.RESUMED, Status.CANCELLED, Status.FAILED)
OVER = (Status.RESUMED, Status.CANCELLED)
"""The final statuses; only a failed run can be revived."""

_STEPS_OWN = frozenset().union(*(step.events for step in LEGAL.values()))
"""The event kinds of the table; all others come from the run itself."""

_TELL_NOBODY = ("redrive", "hold", "shift_deadlines")
"""Steps of decided suspensions that write no event."""

_TELLS_OF_RESUMING = ("redeem", "checkpoint", "suspend_again", "settle")


class Tried(NamedTuple):
    """One step: the transition, its record, its result, its time and its lease."""

    verb: str
    before: SuspensionRecord | None
    change: Change
    now_ms: int
    fence: Fence | None = None


def find_breach(tried: Tried) -> str | None:
    """Return the broken invariant, or None."""
    return next(_breaches(tried), None)


def _breaches(tried: Tried) -> Iterator[str]:
    before, after = tried.before, tried.change.record
    if after is before:
        if tried.change.events or tried.change.ready or tried.change.following:
            yield "a step that changes nothing tells of something"
        return
    yield from _step(tried)
    yield from _rest(after, held=tried.verb == "hold")
    yield from _tale(tried)
    if tried.change.following is not None:
        yield from _rest(tried.change.following)
        if (after.following_id, after.id) != (tried.change.following.id, tried.change.following.previous_id):
            yield "a pause and the one that follows it do not lead to each other"
    if before is not None:
        yield from _moves(tried, before, after)
        for old, new in zip(before.items, after.items, strict=True):
            yield from _item(tried, before, old, new)


def rows_of(verb: str, after: SuspensionRecord) -> tuple[str, ...]:
    """Return the rows of the table that a step takes: `keep_time` takes three, and the last postponement gives up."""
    if verb == "keep_time":
        return ("expire", "escalate", "remind")
    return ("give_up",) if verb == "postpone" and after.status is Status.FAILED else (verb,)


def _step(tried: Tried) -> Iterable[str]:
    """I7: no step outside the table."""
    status = tried.before.status if tried.before is not None else None
    after = tried.change.record
    rows = [LEGAL[name] for name in rows_of(tried.verb, after)]
    if not any(status in row.sources and after.status in row.targets for row in rows):
        yield f"{tried.verb} led from {status} to {after.status}"
    told = {event.type for event in tried.change.events} & _STEPS_OWN
    allowed = frozenset().union(*(row.events for row in rows))
    resumed = {EventType.RUN_RESUMED} if tried.verb in _TELLS_OF_RESUMING else set()
    if not told <= allowed | resumed:
        yield f"{tried.verb} told of {', '.join(sorted(told - allowed))}"


def _rest(record: SuspensionRecord, *, held: bool = False) -> Iterable[str]:
    """I5, I12: a waiting record is on the schedule, an ended one is not, and an end is final."""
    if (record.due_at_ms is None) != (record.status in ENDED):
        yield f"a suspension that is {record.status} has {record.due_at_ms} as its place on the schedule"
    if not held and record.status is Status.PENDING and (record.due_at_ms or 0) > (record.deadline_at_ms or 0):
        yield "a pending suspension is due only after its deadline"
    if record.status in (Status.CANCELLED, Status.FAILED) and record.end is None:
        yield f"a suspension is {record.status} and its run has no end"
    if record.status is Status.RESUMED and (record.end is None) == (record.following_id is None):
        yield "a resumed suspension leads neither to an end nor to the next one, or to both"
    if record.status is Status.RESUMING and record.lease is None:
        yield "a suspension is being resumed by nobody"
    if record.status in (Status.DECIDED, Status.RESUMING, Status.RESUMED) and any(item.open for item in record.items):
        yield f"a suspension is {record.status} with an item still open"


def _tale(tried: Tried) -> Iterable[str]:
    """I1, I10: `decided` and `run_resumed` are recorded once, and a ready run is announced to the workers."""
    before, after = tried.before, tried.change.record
    told = [event.type for event in tried.change.events]
    for one in (after, tried.change.following):
        if (
            one is not None
            and one.status is Status.DECIDED
            and tried.verb not in _TELL_NOBODY
            and not tried.change.ready
        ):
            yield "a suspension is decided and no worker is notified"
    was_decided = before is not None and before.status is not Status.PENDING
    now_decided = after.status is Status.DECIDED and bool(after.items) and not was_decided
    if tried.change.following is None and (told.count(EventType.DECIDED) == 1) != now_decided:
        yield "`decided` is not told exactly when the last item closes"
    was_resumed = before is not None and before.receipt.resumed_at_ms is not None
    now_resumed = after.receipt.resumed_at_ms is not None and not was_resumed
    if told.count(EventType.RUN_RESUMED) != now_resumed:
        yield "`run_resumed` is not told exactly once a pause"


def _moves(tried: Tried, before: SuspensionRecord, after: SuspensionRecord) -> Iterable[str]:
    if before.status in OVER:
        yield f"a suspension that was {before.status} was changed by {tried.verb}"
    if after.updated_at_ms < before.updated_at_ms:
        yield "time ran backwards on a record"
    held, holds = before.lease, after.lease
    if tried.fence is not None and (
        held is None or (held.holder, held.attempt) != (tried.fence.holder, tried.fence.attempt)
    ):
        yield f"{tried.verb} was taken by a worker whose lease is over"
    if tried.verb == "lease" and holds is not None:
        if before.status is Status.RESUMING and held is not None and tried.now_ms < held.until_ms:
            yield "two workers hold one lease"
        if holds.attempt != (held.attempt if held else 0) + 1:
            yield "a lease does not have a new attempt"
    elif tried.verb != "lease" and (held is None) != (holds is None):
        yield f"{tried.verb} gave or took a lease"


def _item(tried: Tried, before: SuspensionRecord, old: Item, new: Item) -> Iterable[str]:
    if old.outcome is not None and new.outcome != old.outcome:
        yield f"the outcome of {old.item_id} changed"
    asked_anew = tried.verb == "ask_again" and new.open and not new.decisions
    if new.decisions[: len(old.decisions)] != old.decisions and not asked_anew:
        yield f"a decision on {old.item_id} was lost"
    for decision in new.decisions[len(old.decisions) :]:
        human = decision.by.kind is ActorKind.HUMAN
        if human == (tried.now_ms >= old.terms.deadline_at_ms):
            yield f"{decision.by.id} decided {old.item_id} on the wrong side of its deadline"
        if human and old.terms.no_self_approval and decision.by.id == before.run.owner:
            yield f"who asked decided {old.item_id}"
        if decision.args_digest != old.digest:
            yield f"a decision on {old.item_id} is about something else"
    if old.open and not new.open and len(new.decisions) == len(old.decisions):
        yield from _reported(tried, old, new)
    people = [decision.by.id for decision in new.decisions]
    if len(people) != len(set(people)):
        yield f"somebody gave two words on {old.item_id}"
    if _spent(new) != _spent(old):
        yield from _permit(tried, before, old)


def _reported(tried: Tried, old: Item, new: Item) -> Iterable[str]:
    """Without a decision, the worker of the call in doubt has reported."""
    by = new.outcome.by.id if new.outcome is not None else None
    if tried.verb != "report" or old.doubt is None or old.doubt.holder != by:
        yield f"{tried.verb} closed {old.item_id} without anybody's word"


def _spent(item: Item) -> tuple[int, int, str] | None:
    return (item.permit.redeemed_at_ms, item.permit.attempt, item.permit.holder) if item.permit is not None else None


def _permit(tried: Tried, before: SuspensionRecord, old: Item) -> Iterable[str]:
    """I3, I4: a permit is redeemed once, in time, for exactly the approved arguments."""
    outcome = old.outcome
    if tried.verb == "return_permits":
        if old.permit is None or before.lease is None or old.permit.attempt != before.lease.attempt:
            yield f"a permit of {old.item_id} was returned that another attempt had spent"
        return
    if tried.verb != "redeem" or before.status is not Status.RESUMING:
        yield f"{tried.verb} spent the permit of {old.item_id} while the suspension was {before.status}"
    if old.permit is not None and not old.tool.idempotent:
        yield f"the permit of {old.item_id} was spent twice"
    if outcome is None or not outcome.may_run:
        yield f"{old.item_id} has no approval, and its permit was redeemed"
    elif old.permit is None and tried.now_ms >= old.start_by_ms:
        yield f"the permit of {old.item_id} was spent after its time"
    elif outcome.digest != digest_item(
        before.binding, old.item_id, old.tool, approved_args(old), old.target_arg, old.terms
    ):
        yield f"{old.item_id} is to run with other arguments than were decided"
