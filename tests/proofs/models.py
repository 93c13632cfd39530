"""A plain model of every step: the oracle of the state machine.

Nothing here is immutable, compared or committed. A step changes a `Pause` and extends its run's events, or raises
`Refused` with the name of the error that the desk must raise.
"""

from dataclasses import dataclass, field

from tests.proofs import spans
from tests.proofs.spans import Span

DUE_AGAIN_MS = 3_000
HELD_AGAIN_MS = 5_000
MOST_TRIES = 5
UNASKED = 9
ASKED_AGAIN_MS = 7_000
AGAIN_START_BY_MS = 60_000
"""The latest start under the rule that asks again."""


class Refused(Exception):
    """The step fails with an error of this name."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


@dataclass(eq=False)
class Thing:
    """One item, with absolute times."""

    kind: str
    deadline: int
    created: int
    quorum: tuple[int, int]
    reviewers: tuple[str, ...]
    fallback: str
    start_by_ms: int
    remind: list[int]
    steps: list[tuple[int, tuple[str, ...]]]
    extend_until: int
    idempotent: bool
    doubt: tuple[str, str] | None = None
    words: dict[str, tuple[str, str]] = field(default_factory=dict)
    verdict: str | None = None
    by: str | None = None
    start_by: int = 0
    spent: bool = False
    reminded: int = 0
    escalated: int = 0
    generation: int = 0
    decided: int = 0
    held_to: int = 0
    held: int = 0
    grace: int = 0
    seen: bool = False
    strict: bool = False
    """Whether it was asked again, so the same rule is satisfied."""

    @property
    def open(self) -> bool:
        return self.verdict is None

    @property
    def unseen(self) -> bool:
        """Whether its fallback would approve an item that no reviewer has seen."""
        timed = self.deadline > self.created + self.held
        return self.open and self.fallback == "approve" and timed and not self.seen and not self.words

    @property
    def runs(self) -> bool:
        return self.verdict in ("approved", "answered")

    def close(self, verdict: str, by: str, now: int) -> None:
        self.verdict, self.by, self.start_by, self.decided = verdict, by, now + self.start_by_ms, now


@dataclass(eq=False)
class Pause:
    """One suspension of a run."""

    things: list[Thing]
    created: int
    run: "Run"
    status: str = "pending"
    look: int | None = None
    holder: str | None = None
    attempt: int = 0
    until: int = 0
    tries: int = 0
    redrives: int = 0
    resumed: bool = False
    journal: set[int] = field(default_factory=set)
    noted: set[int] = field(default_factory=set)
    waits: bool = False
    end: str | None = None

    @property
    def open(self) -> list[Thing]:
        return [thing for thing in self.things if thing.open]


@dataclass(eq=False)
class Run:
    """The events of a run, and how often it was made ready."""

    owner: str
    tale: list[str] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    frozen: list[Span] = field(default_factory=list)
    ready: int = 0
    """How many times the last step made the run ready."""

    def tell(self, *kinds: str) -> None:
        self.tale += kinds


def start(run: Run, things: list[Thing], now: int) -> Pause:
    """Start a suspension; without open items it is decided at once."""
    pause = Pause(things, now, run)
    run.pauses.append(pause)
    if not things:
        run.tell("run_started")
        over(pause, now)
        return pause
    run.tell("run_paused")
    expire(pause, now)
    wait(pause)
    return pause


def over(pause: Pause, now: int) -> None:
    """Decide the suspension: it becomes ready, and is due again in case no worker comes."""
    if pause.things:
        pause.run.tell("decided")
    pause.status, pause.look = "decided", now + DUE_AGAIN_MS
    pause.run.ready += 1


def wait(pause: Pause) -> None:
    """Set the due time of a pending suspension to the next moment of its open items."""
    if pause.status == "pending":
        pause.look = min(
            moment
            for thing in pause.open
            for moment in (
                thing.deadline,
                *thing.remind[thing.reminded :][:1],
                *(at for at, _ in thing.steps[thing.escalated :][:1]),
            )
        )


def look(pause: Pause, now: int) -> bool:
    """Apply what is due; return whether anything was."""
    if pause.status == "pending":
        shift_deadlines(pause, now)
        if pause.open and stands_still(pause):
            if now >= (pause.look or 0):
                pause.look = now + HELD_AGAIN_MS
            return False
        changed = expire(pause, now)
        if pause.status == "pending":
            changed |= escalate(pause, now)
            changed |= remind(pause, now)
        if changed or now >= (pause.look or 0):
            wait(pause)
        return changed
    if pause.status in ("decided", "resuming") and pause.look is not None and now >= pause.look:
        if halts(pause):
            pause.look = now + HELD_AGAIN_MS
            return True
        if pause.status == "resuming" and pause.tries >= MOST_TRIES:
            fail(pause)
        else:
            pause.redrives += 1
            pause.look = now + DUE_AGAIN_MS * min(pause.redrives, 10)
            pause.run.ready += 1
        return True
    return False


def stands_still(pause: Pause) -> bool:
    """Whether the time of its items is frozen."""
    return any(one.holds(tools=True) for one in pause.run.frozen)


def halts(pause: Pause) -> bool:
    """Whether its agent, or a tool that would start first, is frozen."""
    tools = pause.waits or any(thing.runs and not thing.spent for thing in pause.things)
    return any(one.holds(tools=tools) for one in pause.run.frozen)


def lost(pause: Pause, thing: Thing, now: int) -> int:
    """Return the frozen time that was not added yet."""
    since = max(pause.created if thing.open else thing.decided, thing.held_to)
    return spans.lost(pause.run.frozen, since, now)


def is_late(pause: Pause, thing: Thing, now: int) -> bool:
    return now - lost(pause, thing, now) >= thing.deadline


def shift_deadlines(pause: Pause, now: int) -> bool:
    """Add the lost time to everything that is no longer frozen."""
    moved = False
    for thing in pause.things:
        by = 0 if thing.spent or (thing.open and stands_still(pause)) else lost(pause, thing, now)
        if not by:
            continue
        moved, thing.held_to = True, spans.last(pause.run.frozen, now)
        if not thing.open:
            thing.grace += by
            continue
        thing.deadline, thing.held, thing.generation = thing.deadline + by, thing.held + by, thing.generation + 1
        thing.extend_until += by if thing.extend_until else 0
        thing.remind[thing.reminded :] = [at + by for at in thing.remind[thing.reminded :]]
        thing.steps = [(at + by, people) for at, people in thing.steps]
    if moved:
        pause.run.tell("deadlines_moved")
        wait(pause)
    return moved


def wake(pause: Pause, span: Span, now: int) -> None:
    """Resume a suspension after a freeze."""
    if not span.held(tools=bool(pause.things) or pause.waits):
        return
    if pause.status == "pending":
        shift_deadlines(pause, now)
        wait(pause)
    elif pause.status == "decided":
        pause.look = now
        look(pause, now)


def expire(pause: Pause, now: int) -> bool:
    changed = False
    for thing in pause.open:
        if now < thing.deadline:
            continue
        changed = True
        unseen = thing.unseen
        if (unseen or thing.fallback == "escalate") and thing.escalated < len(thing.steps):
            call_in(thing, now + max(thing.deadline - thing.created - thing.held, 1000))
            pause.run.tell("escalated")
            continue
        verdicts = {"approve": "approved", "value": "answered", "fail": "failed"}
        thing.close("denied" if unseen else verdicts.get(thing.fallback, "denied"), "timeout", now)
        pause.run.tell("timed_out")
        if not pause.open:
            over(pause, now)
    return changed


def escalate(pause: Pause, now: int) -> bool:
    changed = False
    for thing in pause.open:
        while thing.escalated < len(thing.steps) and now >= thing.steps[thing.escalated][0]:
            call_in(thing, thing.deadline)
            pause.run.tell("escalated")
            changed = True
    return changed


def call_in(thing: Thing, deadline: int) -> None:
    if thing.reviewers:
        thing.reviewers += tuple(who for who in thing.steps[thing.escalated][1] if who not in thing.reviewers)
    thing.generation += deadline != thing.deadline
    thing.deadline = deadline
    thing.escalated += 1


def remind(pause: Pause, now: int) -> bool:
    changed = False
    for thing in pause.open:
        passed = sum(at <= now for at in thing.remind)
        if passed > thing.reminded:
            thing.reminded = passed
            pause.run.tell("reviewer_reminded")
            changed = True
    return changed


def decide(pause: Pause, thing: Thing, by: str, action: str, args: str, generation: int, now: int) -> None:
    """Record a reviewer's decision on an item in one generation of its terms."""
    check_may_speak(pause, thing, by, now, generation)
    allowed = {"approval": ("approve", "edit", "deny"), "input": ("value", "deny"), "doubt": ("value",)}[thing.kind]
    if ("edit" if args else action) not in allowed and action not in ("value",):
        raise Refused("InvalidInput")
    if action not in allowed:
        raise Refused("InvalidInput")
    thing.words[by] = (action, args)
    same = [who for who, word in thing.words.items() if word[0] == action and (action == "deny" or word[1] == args)]
    pause.run.tell("decision_recorded")
    if len(same) >= thing.quorum[1 if action == "deny" else 0]:
        thing.close({"approve": "approved", "deny": "denied", "value": "answered"}[action], by, now)
        if not pause.open:
            over(pause, now)
    wait(pause)


def check_may_speak(pause: Pause, thing: Thing, by: str, now: int, generation: int | None) -> None:
    if not thing.open:
        raise Refused("AlreadyDecided")
    if pause.status == "cancelled":
        raise Refused("IllegalTransition")
    if is_late(pause, thing, now):
        raise Refused("DeadlinePassed")
    if generation is not None and generation != thing.generation:
        raise Refused("StaleDigest")
    if by == pause.run.owner:
        raise Refused("SelfApproval")
    if thing.reviewers and by not in thing.reviewers:
        raise Refused("NotAllowed")
    if by in thing.words:
        raise Refused("AlreadyDecided")


def extend(pause: Pause, thing: Thing, by: str, until: int, now: int) -> None:
    check_may_speak(pause, thing, by, now, None)
    if not thing.deadline < until <= thing.extend_until:
        raise Refused("InvalidInput")
    thing.deadline = until
    thing.generation += 1
    pause.run.tell("deadline_extended")
    wait(pause)


def ask_again(pause: Pause, thing: Thing, by: str, generation: int, now: int) -> None:
    """Replace an item because another rule applies to the reviewer's edits."""
    check_may_speak(pause, thing, by, now, generation)
    thing.kind, thing.deadline, thing.created = "approval", now + ASKED_AGAIN_MS, now
    thing.quorum, thing.reviewers, thing.fallback, thing.start_by_ms = (1, 1), (), "deny", AGAIN_START_BY_MS
    thing.remind, thing.steps, thing.extend_until, thing.idempotent = [], [], 0, False
    thing.seen = False
    thing.words, thing.reminded, thing.escalated, thing.held, thing.held_to = {}, 0, 0, 0, now
    thing.generation += 1
    thing.strict = True
    pause.run.tell("asked_again")
    wait(pause)


def see(pause: Pause, thing: Thing, by: str, now: int) -> None:
    """Record that a reviewer has seen an item: once, in time, and only if they may decide."""
    may = by != pause.run.owner and (not thing.reviewers or by in thing.reviewers)
    if pause.status != "pending" or not thing.unseen or not may or now >= thing.deadline:
        return
    thing.seen = True
    pause.run.tell("item_seen")
    wait(pause)


def report(pause: Pause, key: str, holder: str, now: int) -> bool:
    if pause.status != "pending":
        raise Refused("IllegalTransition")
    for thing in pause.open:
        if thing.doubt == (key, holder):
            thing.close("answered", holder, now)
            pause.run.tell("result_reported")
            if not pause.open:
                over(pause, now)
            wait(pause)
            return True
    return False


def cancel(pause: Pause) -> bool:
    if pause.status == "cancelled":
        return False
    if pause.end is not None:
        raise Refused("Conflict")
    pause.status, pause.look, pause.end = "cancelled", None, "cancelled"
    pause.run.tell("run_cancelled")
    return True


def fail(pause: Pause) -> None:
    pause.status, pause.look, pause.end = "failed", None, "failed"
    pause.run.tell("run_failed")
