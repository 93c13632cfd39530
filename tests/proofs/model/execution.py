"""The model of a worker's steps."""

from tests.proofs.model.records import ItemModel, Refused, SuspensionModel
from tests.proofs.model.timing import DUE_AGAIN_MS, MAX_TRIES, is_start_frozen, mark_failed, shift_deadlines

ALLOWED = 9
"""The index of the call that the rules allow."""


def lease(suspension: SuspensionModel, holder: str, lease_ms: int, now: int) -> bool:
    if is_start_frozen(suspension):
        raise Refused("Frozen")
    if suspension.status not in ("decided", "resuming"):
        raise Refused("IllegalTransition")
    if suspension.status == "resuming" and now < suspension.until and suspension.holder != holder:
        raise Refused("LeaseHeld")
    moved = shift_deadlines(suspension, now)
    if suspension.status == "resuming" and now < suspension.until:
        return moved
    suspension.waits = False
    suspension.status, suspension.holder, suspension.attempt = "resuming", holder, suspension.attempt + 1
    suspension.tries += 1
    suspension.until = suspension.due_at = now + lease_ms
    suspension.run.record("run_resuming")
    return True


def check_fence(suspension: SuspensionModel, fence: tuple[str, int]) -> None:
    """Refuse a step without the current lease."""
    if (suspension.holder, suspension.attempt) != fence:
        raise Refused("StaleAttempt")
    if suspension.status != "resuming":
        raise Refused("IllegalTransition")


def renew(suspension: SuspensionModel, lease_ms: int, now: int) -> None:
    suspension.until = suspension.due_at = now + lease_ms


def check_permits(items: list[ItemModel], now: int) -> None:
    for item in items:
        if not item.may_run:
            raise Refused("IllegalTransition")
        if not item.redeemed and now >= item.start_by + item.grace:
            raise Refused("DeadlinePassed")
        if item.redeemed and not item.idempotent:
            raise Refused("IllegalTransition")


def redeem(suspension: SuspensionModel, items: list[ItemModel]) -> None:
    """Redeem the permits and journal the calls; without items, the allowed call."""
    note_resumed(suspension)
    for item in items:
        item.redeemed = True
        place = next(at for at, one in enumerate(suspension.items) if one is item)
        begin(suspension, place)
        suspension.run.record("permit_redeemed")
    if not items:
        begin(suspension, ALLOWED)


def begin(suspension: SuspensionModel, place: int) -> None:
    suspension.journal.add(place)
    suspension.noted.discard(place)


def note_resumed(suspension: SuspensionModel) -> None:
    if suspension.items and not suspension.resumed:
        suspension.resumed = True
        suspension.run.record("run_resumed")


def checkpoint(suspension: SuspensionModel) -> None:
    note_resumed(suspension)
    suspension.journal.clear()
    suspension.run.record("tool_completed")


def finish(suspension: SuspensionModel, end: str | None) -> None:
    """End the suspension: its run has ended or is suspended again."""
    note_resumed(suspension)
    suspension.run.record("tool_completed")
    suspension.status, suspension.due_at, suspension.end = "resumed", None, end
    suspension.journal.clear()
    if end is not None:
        suspension.run.record(f"run_{end}")


def postpone(suspension: SuspensionModel, now: int) -> None:
    if suspension.tries >= MAX_TRIES:
        mark_failed(suspension)
    else:
        suspension.until = suspension.due_at = now + 1000 * 2**suspension.tries
        suspension.run.record("run_postponed")


def release(suspension: SuspensionModel, now: int, *, waits: bool) -> None:
    suspension.tries = max(0, suspension.tries - 1)
    suspension.status, suspension.due_at, suspension.waits = "decided", now + DUE_AGAIN_MS, waits
    suspension.run.ready += not waits
    suspension.run.record("run_released")


def revive(suspension: SuspensionModel, now: int) -> None:
    if suspension.status != "failed":
        raise Refused("IllegalTransition")
    suspension.status, suspension.end, suspension.tries, suspension.redrives = "decided", None, 0, 0
    suspension.due_at = now + DUE_AGAIN_MS
    suspension.run.ready += 1
    suspension.run.record("run_revived")
