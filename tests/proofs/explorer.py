"""Walk every interleaving of the actors around one run, and say which of the things that must always hold breaks.

Every actor looks at the record, applies its verb to what it saw, and commits if nobody was faster; else it looks again.
Between any two of these steps every other actor may act, time may pass, and an actor may crash: it forgets what it
knew, or the reply to its commit is lost. The verbs are the real ones; only who uses them, and when, is made here.

The states are finite because only what makes a difference is kept: times as what is left of them, versions as "has
anybody committed since this look", attempts as "is this still the lease". A record that stands the same but for the
absolute time is one *stand*, and every verb is applied to it once.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sayso import deadlines, pauses, resumptions
from sayso.canonical import canonical_json
from sayso.decisions import Decision, DecisionAction
from sayso.errors import AlreadyDecided, SaysoError
from sayso.events import Event, EventType
from sayso.requests import Ask, Item
from sayso.resumptions import Fence, approved_args
from sayso.states import seal_state
from sayso.suspensions import Change, Intent, RunEnd, RunStatus, Status, SuspensionRecord
from tests.proofs.invariants import ENDED, Tried, find_breach
from tests.sayso.records import T0, draft, person

LEASE_MS = 4_000
STATES = {phase: seal_state(canonical_json({"phase": phase})) for phase in ("ask", "call", "act", "end")}
PHASES = {state.ref.digest: phase for phase, state in STATES.items()}
MOST_REDRIVES = 2
"""The delay between two re-drives grows in ten steps; two are enough to see it grow."""

MOST_READY = 2
"""How often one suspension is on the ready list; one more copy only makes one more refused lease."""


class Word(NamedTuple):
    """What a reviewer says of one item of the run's n-th pause; the start is number 0."""

    pause: int
    item_id: str
    action: str = "approve"
    args: dict[str, Any] | None = None
    value: Any = None


@dataclass(frozen=True)
class Verbs:
    """The verbs that are explored; a broken one can be put in to see that it is found out."""

    decide: Callable[..., Change] = pauses.decide
    cancel: Callable[..., Change] = pauses.cancel
    keep_time: Callable[..., Change] = deadlines.keep_time
    redrive: Callable[..., Change] = resumptions.redrive
    lease: Callable[..., Change] = resumptions.lease
    renew: Callable[..., Change] = resumptions.renew
    redeem: Callable[..., Change] = resumptions.redeem
    checkpoint: Callable[..., Change] = resumptions.checkpoint
    postpone: Callable[..., Change] = resumptions.postpone
    suspend_again: Callable[..., Change] = resumptions.suspend_again
    settle: Callable[..., Change] = resumptions.settle


@dataclass(frozen=True)
class Scenario:
    """One run and who is around it. The run makes an unasked call first where `calls`, then asks `asks`, then ends."""

    name: str
    asks: tuple[Ask, ...] = ()
    words: tuple[tuple[Word, ...], ...] = ()
    workers: tuple[str, ...] = ("w1", "w2")
    crashes: int = 3
    calls: bool = False
    nested: bool = False
    cancels: bool = False
    broken: bool = False
    attempts: int = 2
    verbs: Verbs = Verbs()
    compares: bool = True


class Pending(NamedTuple):
    """What an actor is about to commit: the stands it makes, whether it tells the workers, what it does next."""

    after: int
    following: int
    ready: bool
    plan: tuple[str, ...]


class Refused(NamedTuple):
    """A verb that raised."""

    error: str


class State(NamedTuple):
    """Everything that makes a difference. An actor's place in `locals` is its number; -1 is nobody."""

    stands: tuple[int, ...]
    ready: tuple[int, ...]
    locals: tuple[Any, ...]
    effects: tuple[int, ...]
    crashes: int


class Local(NamedTuple):
    """What an actor knows: where it is, at which suspension, what it is to do, by which right, what it would commit."""

    at: str
    pause: int
    plan: tuple[str, ...] = ()
    current: bool = False
    pending: Pending | None = None


IDLE = Local("idle", 0)


class Breach(AssertionError):
    """One of the things that must always hold does not, with the shortest way to it."""


class Stands:
    """Every way in which a record can stand, numbered; the record of each with the moment at which it stands so."""

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.known: list[tuple[SuspensionRecord, int]] = []
        self.nexts: list[int | None] = []
        self.due: list[bool] = []
        self.ended: list[bool] = []
        self._later: dict[tuple[int, int], int] = {}

    def number(self, record: SuspensionRecord, now_ms: int) -> int:
        """Return the number of how `record` stands at `now_ms`."""
        if record.receipt.redrives > MOST_REDRIVES:
            receipt = record.receipt.model_copy(update={"redrives": MOST_REDRIVES})
            record = record.model_copy(update={"receipt": receipt})
        key = self._describe(record, now_ms)
        number = self._numbers.setdefault(key, len(self.known))
        if number == len(self.known):
            self.known.append((record, now_ms))
            self.nexts.append(min((at - now_ms for at in _moments(record) if at > now_ms), default=None))
            self.due.append(record.look_at_ms is not None and record.look_at_ms <= now_ms)
            self.ended.append(record.status in ENDED)
        return number

    def later(self, number: int, passed_ms: int) -> int:
        """Return how the same record stands after a while."""
        found = self._later.get((number, passed_ms))
        if found is None:
            record, now_ms = self.known[number]
            found = number if self.ended[number] else self.number(record, now_ms + passed_ms)
            self._later[number, passed_ms] = found
        return found

    def _describe(self, record: SuspensionRecord, now_ms: int) -> tuple[Any, ...]:
        def left(at_ms: int | None) -> int | None:
            return None if at_ms is None else max(0, at_ms - now_ms)

        if record.status in ENDED:
            return record.id, record.status, record.end.status if record.end else None, _outcomes(record)
        lease, receipt = record.lease, record.receipt
        return (
            record.id,
            record.status,
            left(record.look_at_ms),
            (lease.holder, min(lease.attempt, self._attempts), left(lease.until_ms)) if lease else None,
            tuple(_describe_item(item, left) for item in record.items),
            tuple((one.item_id, one.call_id) for one in record.journal),
            record.state.digest if record.state else None,
            (receipt.resumed_at_ms is None, receipt.redrives, receipt.error is None),
        )


def _outcomes(record: SuspensionRecord) -> tuple[Any, ...]:
    return tuple((item.outcome.verdict, item.outcome.by.id) if item.outcome else None for item in record.items)


def _describe_item(item: Item, left: Callable[[int | None], int | None]) -> tuple[Any, ...]:
    outcome = item.outcome
    words = tuple((one.by.id, one.action, canonical_json(one.args), canonical_json(one.value)) for one in item.decisions)
    if outcome is None:
        return words, left(item.terms.deadline_at_ms), item.reminded, item.escalated
    start_by = left(outcome.start_by_ms) if outcome.may_run else None
    return words, outcome.verdict, outcome.by.id, start_by, item.permit is None


def _moments(record: SuspensionRecord) -> Iterator[int]:
    """When something about a record changes by itself."""
    if record.status in ENDED:
        return
    if record.look_at_ms is not None:
        yield record.look_at_ms
    if record.lease is not None and record.status is Status.RESUMING:
        yield record.lease.until_ms
    for item in record.items:
        if item.outcome is None:
            yield item.terms.deadline_at_ms
            yield from item.terms.remind_at_ms
        elif item.outcome.may_run:
            yield item.outcome.start_by_ms


@dataclass
class Explored:
    """What was walked: how many states and steps, and every kind of event that was told on the way."""

    states: int = 0
    steps: int = 0
    stands: int = 0
    ends: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)


class Explorer:
    """One scenario, walked from its first state to every other. Raises `Breach` where something does not hold."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.explored = Explored()
        self._stands = Stands(scenario.attempts)
        self._tried: dict[tuple[Any, ...], Pending | Refused | None] = {}
        self._reviewers = range(len(scenario.words))
        first = self._reviewers.stop
        self._workers = range(first, first + len(scenario.workers))
        self._clock = self._workers.stop
        self._owner = self._clock + 1
        self._keys: dict[tuple[int, str], int] = {}
        for pause in range(3 if scenario.nested else 2):
            for call in ("-", *(f"i{n}" for n in range(1, len(scenario.asks) + 1))):
                self._keys[pause, call] = len(self._keys)
        self._idempotent = {f"i{n}": ask.tool.idempotent for n, ask in enumerate(scenario.asks, start=1)}

    def explore(self) -> Explored:
        """Walk every reachable state, then see that from each of them the run can still end without a crash."""
        begun = self._begin()
        numbers, states = {begun: 0}, [begun]
        parents: list[tuple[int, str]] = [(-1, "")]
        before: list[list[int]] = [[]]
        at = 0
        while at < len(states):
            try:
                for label, state, crashed in self._moves(states[at]):
                    self.explored.steps += 1
                    number = numbers.setdefault(state, len(states))
                    if number == len(states):
                        states.append(state)
                        parents.append((at, label))
                        before.append([])
                    if not crashed:
                        before[number].append(at)
            except Breach as breach:
                raise Breach(f"{breach} {self._tell_way(parents, states, at)}") from None
            at += 1
        self.explored.states, self.explored.stands = len(states), len(self._stands.known)
        if stuck := self._find_stuck(states, before):
            raise Breach(f"the run can never end from here. {self._tell_way(parents, states, stuck)}")
        return self.explored

    def _begin(self) -> State:
        begun = STATES["call" if self.scenario.calls else "ask" if self.scenario.asks else "end"]
        change = pauses.suspend(draft(id="sus_0", state=begun.ref), (), T0)
        self._check(Tried("suspend", None, change, T0))
        pauses_ = len({pause for pause, _ in self._keys})
        actors = self._owner + (1 if self.scenario.cancels else 0)
        reviewers = tuple(Local("look", 0) for _ in self._reviewers)
        others = (IDLE,) * (self._clock + 1 - len(reviewers))
        owners = (Local("look", 0),) * (actors - self._owner)
        return State(
            stands=(self._stands.number(change.record, T0),),
            ready=(1,) + (0,) * (pauses_ - 1),
            locals=(*reviewers, *others, *owners),
            effects=(0,) * len(self._keys),
            crashes=self.scenario.crashes,
        )

    def _moves(self, state: State) -> Iterator[tuple[str, State, bool]]:
        yield from self._pass_time(state)
        for actor in self._reviewers:
            yield from self._review(state, actor)
        for actor in self._workers:
            yield from self._work(state, actor)
        yield from self._look_after(state)
        if self.scenario.cancels:
            yield from self._cancel(state)

    # What each actor may do next

    def _pass_time(self, state: State) -> Iterator[tuple[str, State, bool]]:
        nexts = [self._stands.nexts[stand] for stand in state.stands]
        passed = min((one for one in nexts if one is not None), default=None)
        if passed is not None:
            stands = tuple(self._stands.later(stand, passed) for stand in state.stands)
            locals_ = tuple(self._later(local, passed) for local in state.locals)
            yield f"{passed} ms pass", state._replace(stands=stands, locals=locals_), False

    def _review(self, state: State, actor: int) -> Iterator[tuple[str, State, bool]]:
        """A reviewer says one word after the other. After a crash the same word is said again, under the same id."""
        words, local, name = self.scenario.words[actor], state.locals[actor], f"reviewer {actor}"
        said = local.pause
        if said < len(words) and words[said].pause < len(state.stands):
            word = words[said]
            done = Local("look", said + 1)
            stand = state.stands[word.pause]
            verb = ("decide", actor, said)
            yield from self._step(state, actor, name, word.pause, stand, verb, again=Local("look", said), done=done)
        if state.crashes and (local.at != "look" or said > 0):
            back = Local("look", said if local.at != "look" else said - 1)
            yield f"{name} crashes and begins again", self._crash(state, actor, back), True

    def _look_after(self, state: State) -> Iterator[tuple[str, State, bool]]:
        local = state.locals[self._clock]
        if local.at == "idle":
            for pause, stand in enumerate(state.stands):
                if self._stands.due[stand]:
                    looking = Local("look", pause)
                    yield from self._step(state, self._clock, "clock", pause, stand, ("look",), again=looking, done=IDLE)
        else:
            stand = state.stands[local.pause]
            looking = Local("look", local.pause)
            yield from self._step(state, self._clock, "clock", local.pause, stand, ("look",), again=looking, done=IDLE)
            if state.crashes:
                yield "clock crashes", self._crash(state, self._clock, IDLE), True

    def _cancel(self, state: State) -> Iterator[tuple[str, State, bool]]:
        """The owner cancels once, wherever the run stands by then."""
        if state.locals[self._owner].at != "done":
            pause = len(state.stands) - 1
            again, done = Local("look", pause), Local("done", 0)
            local = state.locals[self._owner]
            if local.pause != pause:
                state = _put(state, self._owner, again)
            yield from self._step(
                state, self._owner, "owner", pause, state.stands[pause], ("cancel",), again=again, done=done
            )

    def _work(self, state: State, actor: int) -> Iterator[tuple[str, State, bool]]:
        local, name = state.locals[actor], f"worker {actor - self._workers.start + 1}"
        if local.at == "idle":
            for pause, copies in enumerate(state.ready):
                if copies:
                    taken = state._replace(ready=_put_in(state.ready, pause, copies - 1))
                    yield f"{name} takes {pause}", _put(taken, actor, Local("look", pause, ("lease",))), False
            return
        if state.crashes:
            yield f"{name} crashes", self._crash(state, actor, IDLE), True
        doing = local.plan[0]
        if doing.startswith("run:"):
            yield f"{name} runs {doing[4:]}", self._run_tool(state, actor, doing[4:]), False
            return
        verb = (doing, self.scenario.workers[actor - self._workers.start], local.current)
        again = local._replace(at="look", pending=None)
        yield from self._step(state, actor, name, local.pause, state.stands[local.pause], verb, again=again, done=IDLE)
        if local.at == "look" and doing == "checkpoint":
            yield f"{name} renews", _put(state, actor, local._replace(plan=("renew", *local.plan))), False

    def _run_tool(self, state: State, actor: int, call: str) -> State:
        """I3, I11: a call that is not idempotent is started at most once, whatever happens."""
        local = state.locals[actor]
        place = self._keys[local.pause, call]
        count = state.effects[place] + 1
        if count > 1 and not self._idempotent.get(call, False):
            raise Breach(f"the call of {call} was started twice.")
        effects = _put_in(state.effects, place, min(count, 2))
        return _put(state._replace(effects=effects), actor, local._replace(plan=local.plan[1:]))

    # Look, apply, commit

    def _step(
        self,
        state: State,
        actor: int,
        name: str,
        pause: int,
        stand: int,
        verb: tuple[Any, ...],
        *,
        again: Local,
        done: Local,
    ) -> Iterator[tuple[str, State, bool]]:
        """Let an actor look, or commit what it made of an earlier look; `done` is where it stands after success."""
        local = state.locals[actor]
        if local.at == "commit" and local.pending is not None:
            committed = self._commit(state, actor, pause, local.pending)
            onwards = _after(local.pending, again, done)
            yield f"{name} commits {verb[0]}", _put(committed, actor, onwards), False
            if state.crashes:
                doubtful = again._replace(at="doubt", pending=local.pending)
                crashed = committed._replace(crashes=state.crashes - 1)
                yield f"{name} commits {verb[0]}, the reply is lost", _put(crashed, actor, doubtful), True
            return
        if local.at == "doubt" and local.pending is not None:
            yield f"{name} finds its own commit", _put(state, actor, _after(local.pending, again, done)), False
            return
        found = self._try(stand, verb)
        if isinstance(found, Pending):
            yield f"{name} looks to {verb[0]}", _put(state, actor, again._replace(at="commit", pending=found)), False
        else:
            why = found.error if found is not None else "nothing to do"
            yield f"{name}: {verb[0]}: {why}", _put(state, actor, _after_nothing(found, again, done)), False

    def _commit(self, state: State, actor: int, pause: int, pending: Pending) -> State:
        """Compare and swap: whoever looked before this commit has to look again."""
        stands = _put_in(state.stands, pause, pending.after)
        ready, last = state.ready, pause
        if pending.following >= 0:
            stands, last = (*stands, pending.following), len(stands)
        if pending.ready:
            ready = _put_in(ready, last, min(ready[last] + 1, MOST_READY))
        leased = pending.plan != () and actor in self._workers
        locals_ = list(state.locals)
        for other, local in enumerate(state.locals):
            if other == actor or local.at == "idle" or self._pause_of(other, local) != pause:
                continue
            if leased and other in self._workers:
                local = local._replace(current=False)  # noqa: PLW2901
            if local.pending is not None and self.scenario.compares:
                local = local._replace(at="look", pending=None)  # noqa: PLW2901
            locals_[other] = local
        return state._replace(stands=stands, ready=ready, locals=tuple(locals_))

    def _pause_of(self, actor: int, local: Local) -> int:
        if actor in self._reviewers:
            words = self.scenario.words[actor]
            return words[local.pause].pause if local.pause < len(words) else -1
        return local.pause

    def _crash(self, state: State, actor: int, back: Local) -> State:
        return _put(state, actor, back)._replace(crashes=state.crashes - 1)

    def _later(self, local: Local, passed_ms: int) -> Local:
        if local.pending is None:
            return local
        after, following = (
            one if one < 0 else self._stands.later(one, passed_ms)
            for one in (local.pending.after, local.pending.following)
        )
        return local._replace(pending=local.pending._replace(after=after, following=following))

    def _try(self, stand: int, verb: tuple[Any, ...]) -> Pending | Refused | None:
        """Apply a verb to a stand, once; None when it changes nothing."""
        key = (stand, *verb)
        if key not in self._tried:
            self._tried[key] = self._apply(stand, verb)
        return self._tried[key]

    def _apply(self, stand: int, verb: tuple[Any, ...]) -> Pending | Refused | None:
        record, now_ms = self._stands.known[stand]
        fence = self._fence(record, verb) if verb[0] not in ("decide", "look", "cancel", "lease") else None
        try:
            name, change = self._call(record, now_ms, verb, fence)
        except AlreadyDecided as error:
            self._check_told(record, verb, error)
            return Refused(type(error).__name__)
        except SaysoError as error:
            return Refused(type(error).__name__)
        self._check(Tried(name, record, change, now_ms, fence))
        if change.record is record:
            if verb[0] == "look" and self._stands.due[stand]:
                raise Breach("the clock is called for nothing, for ever.")
            return None
        following = self._stands.number(change.following, now_ms) if change.following else -1
        plan = self._plan(change.record, now_ms) if name == "lease" else ()
        return Pending(self._stands.number(change.record, now_ms), following, change.ready, plan)

    def _check(self, tried: Tried) -> None:
        self.explored.told |= {event.type for event in tried.change.events}
        record = tried.change.record
        if record.end is not None:
            self.explored.ends.add(record.end.status)
        if breach := find_breach(tried):
            raise Breach(f"{breach}.")

    def _check_told(self, record: SuspensionRecord, verb: tuple[Any, ...], error: AlreadyDecided) -> None:
        """I1, I13: whoever comes second is told who was first."""
        word = self.scenario.words[verb[1]][verb[2]]
        outcome = pauses.find_item(record, word.item_id).outcome
        first = outcome.by.id if outcome is not None else f"reviewer{verb[1]}"
        if error.facts.get("decided_by") != first:
            raise Breach(f"a reviewer is told {error.facts.get('decided_by')} decided, and it was {first}.")

    # What is done to a record

    def _call(
        self, record: SuspensionRecord, now_ms: int, verb: tuple[Any, ...], fence: Fence | None
    ) -> tuple[str, Change]:
        verbs, doing = self.scenario.verbs, verb[0]
        if doing == "decide":
            return doing, verbs.decide(record, self._word(record, verb[1], verb[2], now_ms), now_ms)
        if doing == "look":
            if record.status is Status.PENDING:
                return "expire", verbs.keep_time(record, now_ms)
            return "redrive", verbs.redrive(record, now_ms)
        if doing == "cancel":
            return doing, verbs.cancel(record, person("owner"), None, now_ms)
        if doing == "lease":
            return doing, verbs.lease(record, verb[1], LEASE_MS, now_ms)
        assert fence is not None
        if doing == "renew":
            return doing, verbs.renew(record, fence, now_ms)
        if doing == "postpone":
            return doing, verbs.postpone(record, fence, "no such agent", now_ms)
        return self._drive(record, now_ms, doing, fence)

    def _drive(self, record: SuspensionRecord, now_ms: int, doing: str, fence: Fence) -> tuple[str, Change]:
        verbs = self.scenario.verbs
        done = (Event(type=EventType.TOOL_COMPLETED, data={}),)
        if doing == "redeem":
            intents = tuple(_intent(record, fence, item, now_ms) for item in record.items if _may_start(item, now_ms))
            return doing, verbs.redeem(record, fence, intents, (), now_ms)
        if doing == "redeem unasked":  # as the desk does it: the state and the intent in one step
            saved = verbs.checkpoint(record, fence, STATES["call"], (), now_ms)
            spent = verbs.redeem(saved.record, fence, (_intent(record, fence, None, now_ms),), (), now_ms)
            return "redeem", Change(spent.record, saved.events + spent.events, state=STATES["call"])
        if doing == "checkpoint":
            return doing, verbs.checkpoint(record, fence, STATES["ask" if self._asks_after(record) else "end"], (), now_ms)
        if doing == "suspend_again":
            number = int(record.id.removeprefix("sus_")) + 1
            following = draft(id=f"sus_{number}", run=record.run)
            return doing, verbs.suspend_again(record, fence, following, self.scenario.asks, STATES["act"], (), now_ms)
        status = RunStatus(doing.removeprefix("settle "))
        return "settle", verbs.settle(record, fence, RunEnd(status=status), done, now_ms)

    def _plan(self, record: SuspensionRecord, now_ms: int) -> tuple[str, ...]:
        """What a worker does once it holds the lease, as the runner does it."""
        assert record.state is not None
        phase = PHASES[record.state.digest]
        if self.scenario.broken:
            return ("postpone",)
        if record.failed_by_fallback or any(not intent.idempotent for intent in record.journal):
            return ("settle failed",)
        onwards: tuple[str, ...] = ("settle completed",)
        if phase == "end":
            return onwards
        if phase == "ask":
            return ("suspend_again",)
        if self._asks_after(record):
            onwards = ("suspend_again",)
        if phase == "call":
            return ("redeem unasked", "run:-", "checkpoint", *onwards)
        starting = [item.item_id for item in record.items if _may_start(item, now_ms)]
        ran = ("redeem", *(f"run:{item_id}" for item_id in starting), "checkpoint") if starting else ("checkpoint",)
        return (*ran, *onwards)

    def _asks_after(self, record: SuspensionRecord) -> bool:
        """Whether the run pauses once more after what it does at this pause."""
        if record.id == "sus_0":
            return bool(self.scenario.asks)
        return self.scenario.nested and record.id == "sus_1"

    def _word(self, record: SuspensionRecord, actor: int, said: int, now_ms: int) -> Decision:
        word = self.scenario.words[actor][said]
        return Decision(
            id=f"dec_{actor}_{said}",
            suspension_id=record.id,
            suspension_version=record.version,
            item_id=word.item_id,
            action=DecisionAction(word.action),
            args=word.args,
            value=word.value,
            args_digest=pauses.find_item(record, word.item_id).digest,
            by=person(f"reviewer{actor}"),
            at_ms=now_ms,
        )

    def _fence(self, record: SuspensionRecord, verb: tuple[Any, ...]) -> Fence:
        attempt = record.lease.attempt if record.lease else 0
        return Fence(verb[1], attempt if verb[2] else attempt - 1, LEASE_MS)

    # What is told in the end

    def _find_stuck(self, states: list[State], before: list[list[int]]) -> int | None:
        """I12: return a state from which the run cannot end any more, unless by a crash."""
        ends = [at for at, state in enumerate(states) if all(self._stands.ended[one] for one in state.stands)]
        seen = bytearray(len(states))
        for at in ends:
            seen[at] = 1
        queue = deque(ends)
        while queue:
            for one in before[queue.popleft()]:
                if not seen[one]:
                    seen[one] = 1
                    queue.append(one)
        stuck = seen.find(0)
        return None if stuck < 0 else stuck

    def _tell_way(self, parents: list[tuple[int, str]], states: list[State], at: int) -> str:
        steps: list[str] = []
        last = states[at]
        while at > 0:
            at, label = parents[at]
            steps.append(label)
        records = [self._stands.known[stand] for stand in last.stands]
        where = "; ".join(f"{record.id} is {record.status}" for record, _ in records)
        return f"[{self.scenario.name}] {where}. The way there: {' > '.join(reversed(steps)) or 'none'}"


def _after(pending: Pending, again: Local, done: Local) -> Local:
    """Where an actor stands after a commit that it knows of."""
    if again.plan == ():
        return done
    plan = pending.plan or again.plan[1:]
    current = again.current or bool(pending.plan)
    return Local("look", again.pause, plan, current) if plan else done


def _after_nothing(found: Refused | None, again: Local, done: Local) -> Local:
    """A verb that was refused ends what its actor was about; one that found its work done lets it go on.

    A worker that is told it holds the lease already leaves the run to whoever holds it.
    """
    if again.plan == () or found is not None or again.plan[0] == "lease" or len(again.plan) == 1:
        return done
    return again._replace(plan=again.plan[1:])


def _may_start(item: Item, now_ms: int) -> bool:
    outcome = item.outcome
    if outcome is None or not outcome.may_run:
        return False
    return now_ms < outcome.start_by_ms or item.permit is not None


def _intent(record: SuspensionRecord, fence: Fence, item: Item | None, now_ms: int) -> Intent:
    assert item is None or approved_args(item) is not None
    return Intent(
        item_id=item.item_id if item else None,
        call_id=item.call_id if item else "-",
        index=item.index if item else 0,
        tool="refund",
        idempotency_key=f"{record.id}:{item.item_id if item else '-'}",
        idempotent=item.tool.idempotent if item else False,
        attempt=fence.attempt,
        holder=fence.holder,
        begun_at_ms=now_ms,
    )


def _put(state: State, actor: int, local: Local) -> State:
    return state._replace(locals=_put_in(state.locals, actor, local))


def _put_in(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])
