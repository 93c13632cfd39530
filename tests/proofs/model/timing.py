"""The model of time: ticks, fallbacks, escalations, reminders and freezes."""

from tests.proofs.model.freezes import FreezeModel, find_last_frozen, sum_frozen_time
from tests.proofs.model.records import ItemModel, SuspensionModel

DUE_AGAIN_MS = 3_000
HELD_AGAIN_MS = 5_000
MAX_TRIES = 5


def mark_decided(suspension: SuspensionModel, now: int) -> None:
    """Decide the suspension: it becomes ready, and is due again in case no worker comes."""
    if suspension.items:
        suspension.run.record("decided")
    suspension.status, suspension.due_at = "decided", now + DUE_AGAIN_MS
    suspension.run.ready += 1


def mark_failed(suspension: SuspensionModel) -> None:
    suspension.status, suspension.due_at, suspension.end = "failed", None, "failed"
    suspension.run.record("run_failed")


def reschedule(suspension: SuspensionModel) -> None:
    """Set the due time of a pending suspension to the next moment of its open items."""
    if suspension.status == "pending":
        suspension.due_at = min(moment for item in suspension.open for moment in list_moments(item))


def list_moments(item: ItemModel) -> list[int]:
    """Return when an open item is due."""
    if item.undoable is not None:
        return [item.undoable.until]
    steps = [at for at, _ in item.steps[item.escalated :][:1]]
    return [item.deadline, *item.remind[item.reminded :][:1], *steps]


def tick(suspension: SuspensionModel, now: int) -> bool:
    """Apply what is due; return whether anything was."""
    if suspension.status == "pending":
        shift_deadlines(suspension, now)
        changed = take_effect(suspension, now)
        if suspension.open and is_item_time_frozen(suspension):
            if now >= (suspension.due_at or 0):
                suspension.due_at = now + HELD_AGAIN_MS
            return changed
        if suspension.status == "pending":
            changed |= expire(suspension, now)
        if suspension.status == "pending":
            changed |= escalate(suspension, now)
            changed |= remind(suspension, now)
        if changed or now >= (suspension.due_at or 0):
            reschedule(suspension)
        return changed
    if suspension.status in ("decided", "resuming") and suspension.due_at is not None and now >= suspension.due_at:
        if is_start_frozen(suspension):
            suspension.due_at = now + HELD_AGAIN_MS
            return True
        if suspension.status == "resuming" and suspension.tries >= MAX_TRIES:
            mark_failed(suspension)
        else:
            suspension.redrives += 1
            suspension.due_at = now + DUE_AGAIN_MS * min(suspension.redrives, 10)
            suspension.run.ready += 1
        return True
    return False


def is_item_time_frozen(suspension: SuspensionModel) -> bool:
    return any(freeze.is_active(tools=True) for freeze in suspension.run.freezes)


def is_start_frozen(suspension: SuspensionModel) -> bool:
    """Whether its agent, or a tool that would start first, is frozen."""
    tools = suspension.waits or any(item.may_run and not item.redeemed for item in suspension.items)
    return any(freeze.is_active(tools=tools) for freeze in suspension.run.freezes)


def is_late(suspension: SuspensionModel, item: ItemModel, now: int) -> bool:
    return now - new_frozen_time(suspension, item, now) >= item.deadline


def shift_deadlines(suspension: SuspensionModel, now: int) -> bool:
    """Add the frozen time to everything that is no longer frozen."""
    moved = False
    for item in suspension.items:
        skipped = item.redeemed or item.undoable is not None or (item.open and is_item_time_frozen(suspension))
        by = 0 if skipped else new_frozen_time(suspension, item, now)
        if not by:
            continue
        moved, item.held_to = True, find_last_frozen(suspension.run.freezes, now)
        if not item.open:
            item.grace += by
            continue
        item.deadline, item.frozen_ms, item.generation = item.deadline + by, item.frozen_ms + by, item.generation + 1
        item.extend_until += by if item.extend_until else 0
        item.remind[item.reminded :] = [at + by for at in item.remind[item.reminded :]]
        item.steps = [(at + by, people) for at, people in item.steps]
    if moved:
        suspension.run.record("deadlines_moved")
        reschedule(suspension)
    return moved


def new_frozen_time(suspension: SuspensionModel, item: ItemModel, now: int) -> int:
    """Return the frozen time that was not added yet."""
    since = max(suspension.created if item.open else item.decided, item.held_to)
    return sum_frozen_time(suspension.run.freezes, since, now)


def wake(suspension: SuspensionModel, freeze: FreezeModel, now: int) -> None:
    """Resume a suspension after a freeze."""
    if not freeze.covers(tools=bool(suspension.items) or suspension.waits):
        return
    if suspension.status == "pending":
        shift_deadlines(suspension, now)
        reschedule(suspension)
    elif suspension.status == "decided":
        suspension.due_at = now
        tick(suspension, now)


def take_effect(suspension: SuspensionModel, now: int) -> bool:
    """Count every decision that can be undone no longer."""
    due = [item for item in suspension.open if item.undoable is not None and now >= item.undoable.until]
    for item in due:
        undoable, item.undoable = item.undoable, None
        if undoable is not None:
            count(suspension, item, undoable.by, undoable.action, undoable.args, now)
            reschedule(suspension)
    return bool(due)


def completes_quorum(item: ItemModel, by: str, action: str, args: str) -> bool:
    """Whether the quorum is met with this decision."""
    alike = {who for who, made in item.decisions.items() if made[0] == action and (action == "deny" or made[1] == args)}
    return len({*alike, by}) >= item.quorum[1 if action == "deny" else 0]


def count(suspension: SuspensionModel, item: ItemModel, by: str, action: str, args: str, now: int) -> None:
    """Record a decision; a met quorum closes its item."""
    item.decisions[by] = (action, args)
    suspension.run.record("decision_recorded")
    if completes_quorum(item, by, action, args):
        item.close({"approve": "approved", "deny": "denied", "value": "answered"}[action], by, now)
        if not suspension.open:
            mark_decided(suspension, now)


def expire(suspension: SuspensionModel, now: int) -> bool:
    changed = False
    for item in suspension.open:
        if now < item.deadline or item.undoable is not None:
            continue
        changed = True
        unseen = item.unseen
        if (unseen or item.fallback == "escalate") and item.escalated < len(item.steps):
            _escalate_item(item, now + max(item.deadline - item.created - item.frozen_ms, 1000))
            suspension.run.record("escalated")
            continue
        verdicts = {"approve": "approved", "value": "answered", "fail": "failed"}
        item.close("denied" if unseen else verdicts.get(item.fallback, "denied"), "timeout", now)
        suspension.run.record("timed_out")
        if not suspension.open:
            mark_decided(suspension, now)
    return changed


def escalate(suspension: SuspensionModel, now: int) -> bool:
    changed = False
    for item in suspension.open:
        if item.undoable is not None:
            continue
        while item.escalated < len(item.steps) and now >= item.steps[item.escalated][0]:
            _escalate_item(item, item.deadline)
            suspension.run.record("escalated")
            changed = True
    return changed


def _escalate_item(item: ItemModel, deadline: int) -> None:
    if item.reviewers:
        item.reviewers += tuple(who for who in item.steps[item.escalated][1] if who not in item.reviewers)
    item.generation += deadline != item.deadline
    item.deadline = deadline
    item.escalated += 1


def remind(suspension: SuspensionModel, now: int) -> bool:
    changed = False
    for item in suspension.open:
        passed = sum(at <= now for at in item.remind)
        if passed > item.reminded and item.undoable is None:
            item.reminded = passed
            suspension.run.record("reviewer_reminded")
            changed = True
    return changed
