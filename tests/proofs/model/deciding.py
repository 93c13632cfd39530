"""The model of clients and reviewers: starting, deciding, extending and cancelling."""

from tests.proofs.model.records import ItemModel, Refused, RunModel, SuspensionModel, UndoableModel
from tests.proofs.model.timing import (
    completes_quorum,
    count,
    expire,
    is_late,
    mark_decided,
    new_frozen_time,
    reschedule,
)

ASKED_AGAIN_MS = 7_000
ASKED_AGAIN_START_BY_MS = 60_000
"""The latest start under the rule that asks again."""


def start(run: RunModel, items: list[ItemModel], now: int) -> SuspensionModel:
    """Start a suspension; without open items it is decided at once."""
    suspension = SuspensionModel(items, now, run)
    run.suspensions.append(suspension)
    if not items:
        run.record("run_started")
        mark_decided(suspension, now)
        return suspension
    run.record("run_paused")
    expire(suspension, now)
    reschedule(suspension)
    return suspension


def decide(
    suspension: SuspensionModel, item: ItemModel, by: str, action: str, args: str, generation: int, now: int
) -> None:
    """Record a reviewer's decision on an item in one generation of its terms."""
    check_may_decide(suspension, item, by, now, generation)
    allowed = {"approval": ("approve", "edit", "deny"), "input": ("value", "deny"), "doubt": ("value",)}[item.kind]
    if ("edit" if args else action) not in allowed and action not in ("value",):
        raise Refused("InvalidInput")
    if action not in allowed:
        raise Refused("InvalidInput")
    until = min(now + min(item.undo_ms, item.start_by_ms), item.deadline + new_frozen_time(suspension, item, now))
    if until > now and completes_quorum(item, by, action, args):
        item.undoable = UndoableModel(by, action, args, until)
        suspension.run.record("decision_deferred")
    else:
        count(suspension, item, by, action, args, now)
    reschedule(suspension)


def retract(suspension: SuspensionModel, item: ItemModel, by: str, now: int) -> None:
    """Take back the decision of a reviewer, once, while the item is open and in time."""
    undoable = item.undoable
    if undoable is not None and undoable.by == by and now < undoable.until and suspension.status == "pending":
        item.undoable = None
    else:
        check_in_time(suspension, item, now)
        if by not in item.decisions and by not in item.retracted:
            raise Refused("Conflict")
        if by not in item.decisions:
            return
        del item.decisions[by]
    item.taken += 1
    item.retracted.append(by)
    suspension.run.record("decision_retracted")
    reschedule(suspension)


def void(suspension: SuspensionModel, by: str) -> bool:
    """Take out the decisions of a deactivated reviewer; return whether there were any."""
    found = False
    for item in suspension.open if suspension.status == "pending" else []:
        soon = item.undoable is not None and item.undoable.by == by
        if not soon and by not in item.decisions:
            continue
        found = True
        item.decisions.pop(by, None)
        item.undoable = None if soon else item.undoable
        item.taken += 1
        suspension.run.record("decision_voided")
    if found:
        reschedule(suspension)
    return found


def check_in_time(suspension: SuspensionModel, item: ItemModel, now: int) -> None:
    if not item.open:
        raise Refused("AlreadyDecided")
    if item.undoable is not None and suspension.status == "pending":
        raise Refused("Conflict")
    if suspension.status == "cancelled":
        raise Refused("IllegalTransition")
    if is_late(suspension, item, now):
        raise Refused("DeadlinePassed")


def check_may_decide(suspension: SuspensionModel, item: ItemModel, by: str, now: int, generation: int | None) -> None:
    check_in_time(suspension, item, now)
    if generation is not None and generation != item.generation:
        raise Refused("StaleDigest")
    if by == suspension.run.owner:
        raise Refused("SelfApproval")
    if item.reviewers and by not in item.reviewers:
        raise Refused("NotAllowed")
    if by in item.decisions:
        raise Refused("AlreadyDecided")


def extend(suspension: SuspensionModel, item: ItemModel, by: str, until: int, now: int) -> None:
    check_may_decide(suspension, item, by, now, None)
    if not item.deadline < until <= item.extend_until:
        raise Refused("InvalidInput")
    item.deadline = until
    item.generation += 1
    suspension.run.record("deadline_extended")
    reschedule(suspension)


def ask_again(suspension: SuspensionModel, item: ItemModel, by: str, generation: int, now: int) -> None:
    """Replace an item because another rule applies to the reviewer's edits."""
    check_may_decide(suspension, item, by, now, generation)
    item.kind, item.deadline, item.created = "approval", now + ASKED_AGAIN_MS, now
    item.quorum, item.reviewers, item.fallback, item.start_by_ms = (1, 1), (), "deny", ASKED_AGAIN_START_BY_MS
    item.remind, item.steps, item.extend_until, item.idempotent, item.undo_ms = [], [], 0, False, 0
    item.seen = False
    item.retracted = []
    item.decisions, item.reminded, item.escalated, item.frozen_ms, item.held_to = {}, 0, 0, 0, now
    item.generation += 1
    item.asked_again = True
    suspension.run.record("asked_again")
    reschedule(suspension)


def see(suspension: SuspensionModel, item: ItemModel, by: str, now: int) -> None:
    """Record that a reviewer has seen an item: once, in time, and only if they may decide."""
    may = by != suspension.run.owner and (not item.reviewers or by in item.reviewers)
    if suspension.status != "pending" or not item.unseen or not may or now >= item.deadline:
        return
    item.seen = True
    suspension.run.record("item_seen")
    reschedule(suspension)


def report(suspension: SuspensionModel, key: str, holder: str, now: int) -> bool:
    if suspension.status != "pending":
        raise Refused("IllegalTransition")
    for item in suspension.open:
        if item.doubt == (key, holder):
            item.close("answered", holder, now)
            suspension.run.record("result_reported")
            if not suspension.open:
                mark_decided(suspension, now)
            reschedule(suspension)
            return True
    return False


def cancel(suspension: SuspensionModel) -> bool:
    if suspension.status == "cancelled":
        return False
    if suspension.end is not None:
        raise Refused("Conflict")
    suspension.status, suspension.due_at, suspension.end = "cancelled", None, "cancelled"
    suspension.run.record("run_cancelled")
    return True
