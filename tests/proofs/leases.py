"""The model of a worker's steps."""

from tests.proofs.models import DUE_AGAIN_MS, MOST_TRIES, UNASKED, Pause, Refused, Thing, fail, halts, shift_deadlines


def lease(pause: Pause, holder: str, lease_ms: int, now: int) -> bool:
    if halts(pause):
        raise Refused("Frozen")
    if pause.status not in ("decided", "resuming"):
        raise Refused("IllegalTransition")
    if pause.status == "resuming" and now < pause.until and pause.holder != holder:
        raise Refused("LeaseHeld")
    moved = shift_deadlines(pause, now)
    if pause.status == "resuming" and now < pause.until:
        return moved
    pause.waits = False
    pause.status, pause.holder, pause.attempt = "resuming", holder, pause.attempt + 1
    pause.tries += 1
    pause.until = pause.look = now + lease_ms
    pause.run.tell("run_resuming")
    return True


def check_fence(pause: Pause, fence: tuple[str, int]) -> None:
    """Refuse a step without the current lease."""
    if (pause.holder, pause.attempt) != fence:
        raise Refused("StaleAttempt")
    if pause.status != "resuming":
        raise Refused("IllegalTransition")


def renew(pause: Pause, lease_ms: int, now: int) -> None:
    pause.until = pause.look = now + lease_ms


def check_permits(things: list[Thing], now: int) -> None:
    for thing in things:
        if not thing.runs:
            raise Refused("IllegalTransition")
        if not thing.spent and now >= thing.start_by + thing.grace:
            raise Refused("DeadlinePassed")
        if thing.spent and not thing.idempotent:
            raise Refused("IllegalTransition")


def redeem(pause: Pause, things: list[Thing]) -> None:
    """Redeem the permits and journal the calls; call number 9 needs no approval."""
    note_resumed(pause)
    for thing in things:
        thing.spent = True
        place = next(at for at, one in enumerate(pause.things) if one is thing)
        begin(pause, place)
        pause.run.tell("permit_redeemed")
    if not things:
        begin(pause, UNASKED)


def begin(pause: Pause, place: int) -> None:
    pause.journal.add(place)
    pause.noted.discard(place)


def note_resumed(pause: Pause) -> None:
    if pause.things and not pause.resumed:
        pause.resumed = True
        pause.run.tell("run_resumed")


def checkpoint(pause: Pause) -> None:
    note_resumed(pause)
    pause.journal.clear()
    pause.run.tell("tool_completed")


def finish(pause: Pause, end: str | None) -> None:
    """End the suspension: its run has ended or is suspended again."""
    note_resumed(pause)
    pause.run.tell("tool_completed")
    pause.status, pause.look, pause.end = "resumed", None, end
    pause.journal.clear()
    if end is not None:
        pause.run.tell(f"run_{end}")


def postpone(pause: Pause, now: int) -> None:
    if pause.tries >= MOST_TRIES:
        fail(pause)
    else:
        pause.until = pause.look = now + 1000 * 2**pause.tries
        pause.run.tell("run_postponed")


def release(pause: Pause, now: int, *, waits: bool) -> None:
    pause.tries = max(0, pause.tries - 1)
    pause.status, pause.look, pause.waits = "decided", now + DUE_AGAIN_MS, waits
    pause.run.ready += not waits
    pause.run.tell("run_released")


def revive(pause: Pause, now: int) -> None:
    if pause.status != "failed":
        raise Refused("IllegalTransition")
    pause.status, pause.end, pause.tries, pause.redrives = "decided", None, 0, 0
    pause.look = now + DUE_AGAIN_MS
    pause.run.ready += 1
    pause.run.tell("run_revived")
