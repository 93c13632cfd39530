"""An explorer of every interleaving of the actors around one run, which checks the invariants.

Every actor reads the record, applies its transition to it, and commits if nobody was faster; else it reads again.
Between any two of these steps every other actor may act, time may pass, and an actor may crash: it loses its memory, or
the reply to its commit.

Three reductions keep the number of states small without losing an outcome:

- The store accepts one commit and makes all others read again, so at most one of the actors that have read commits.
  Only that one is kept, and only if time passes between its read and its commit.
- An actor that can only be refused from now on (an expired worker, a reviewer of a decided item) is done.
- An id that a worker has popped but not leased stays on the ready list, unless that worker crashes.
"""

from collections.abc import Iterator
from typing import Any

from sayso.core.records.suspensions import Status
from sayso.core.transitions.deciding import find_item, suspend
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.legal import LEGAL
from sayso.errors import AlreadyDecided, SaysoError
from tests.proofs.explorer_handing import begin_handed, hand_over, hand_to_waiting, pop_handed, take_handed
from tests.proofs.explorer_states import (
    Applied,
    DelayedCommit,
    Explored,
    Handed,
    InvariantViolation,
    Move,
    Refused,
    State,
    Turn,
    WorkerState,
    check_decided_by,
    describe_path,
    fence_off,
    find_stuck,
    remember,
    replace_at,
)
from tests.proofs.invariants import FINAL, Step, find_violation, rows_of
from tests.proofs.record_states import RecordStates
from tests.proofs.scenarios import ALLOWED, Scenario
from tests.sayso.samples import T0

AFTER_THE_END = ("record_deliveries", "take_second_look", "note_undone")
"""Steps that an ended suspension may take."""


class Explorer:
    """An exploration of one scenario from its first state."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._explored = Explored()
        self._records = RecordStates()
        self._results: dict[tuple[Any, ...], Applied | Refused | None] = {}
        reviewers, workers = len(scenario.reviewers), len(scenario.workers)
        self._reviewers = range(reviewers)
        self._workers = range(reviewers, reviewers + workers)
        self._clock = reviewers + workers
        self._owner = self._clock + 1
        self._calls = (ALLOWED, *(f"i{place}" for place in range(1, max(1, len(scenario.drafts)) + 1)))

    def explore(self) -> Explored:
        """Visit every reachable state; raises `InvariantViolation` for a broken invariant, or a run that cannot end."""
        start = self._begin()
        numbers, states = {start: 0}, [start]
        paths: list[tuple[int, str]] = [(-1, "")]
        sources: list[list[int]] = [[]]
        at = 0
        while at < len(states):
            try:
                for label, state, fault in self._moves(states[at]):
                    self._explored.moves += 1
                    number = numbers.setdefault(state, len(states))
                    if number == len(states):
                        states.append(state)
                        paths.append((at, label))
                        sources.append([])
                    if not fault:
                        sources[number].append(at)
            except InvariantViolation as violation:
                raise InvariantViolation(f"{violation} {self._describe(paths, states, at)}") from None
            at += 1
        self._explored.states, self._explored.records = len(states), len(self._records.known)
        ended = [at for at, state in enumerate(states) if all(self._records.ended[one] for one in state.records)]
        if (stuck := find_stuck(ended, sources)) is not None:
            raise InvariantViolation(f"the run can never end from here. {self._describe(paths, states, stuck)}")
        return self._explored

    def _begin(self) -> State:
        change = suspend(self._scenario.begin(), (), T0)
        self._check(Step("suspend", None, change, T0))
        step, handed = begin_handed(self._scenario, change, T0)
        if step is not None:
            self._check(step)
        change = step.change if step is not None else change
        return State(
            records=(self._records.number(change.record, T0),),
            ready=(int(change.ready),) + (0,) * (self._scenario.max_suspensions - 1),
            memory=(*(0 for _ in self._reviewers), *(None for _ in self._workers), None, 0),
            ran=(0,) * (self._scenario.max_suspensions * len(self._calls)),
            crashes=self._scenario.crashes,
            handed=handed,
        )

    def _moves(self, state: State) -> Iterator[Move]:
        turns = list(self._turns(state))
        yield from self._pass_time(state, turns)
        if state.delayed is not None:
            yield from self._commit(state, *state.delayed)
        for turn in turns:
            yield from self._take_turn(state, turn)
        for actor in self._workers:
            yield from self._work_or_crash(state, actor)
        yield from pop_handed(state, self._workers)

    def _turns(self, state: State) -> Iterator[Turn]:
        """Return every step that an actor may take now, except a delayed one."""
        busy = state.delayed.actor if state.delayed is not None else None
        for actor in self._reviewers:
            done, steps = state.memory[actor], self._scenario.reviewers[actor]
            if actor != busy and done < len(steps) and steps[done].suspension < len(state.records):
                turn = Turn(actor, steps[done].suspension, ("review", actor, done), done + 1)
                yield from (turn, *hand_to_waiting(self._scenario, state, self._workers, turn))
        for actor, holder in zip(self._workers, self._scenario.workers, strict=True):
            if actor != busy:
                yield from self._worker_turns(state, actor, holder)
        if self._clock != busy:
            for suspension, number in enumerate(state.records):
                if self._records.due[number]:
                    yield Turn(self._clock, suspension, ("tick",), None)
            yield from take_handed(state, self._workers, self._clock)
        done, last = state.memory[self._owner], len(state.records) - 1
        if self._owner != busy and done < len(self._scenario.owner_steps):
            owner_step = self._scenario.owner_steps[done]
            if owner_step != "revive" or self._records.known[state.records[last]][0].status is Status.FAILED:
                yield Turn(self._owner, last, (owner_step,), done + 1)

    def _worker_turns(self, state: State, actor: int, holder: str) -> Iterator[Turn]:
        worker = state.memory[actor]
        if worker is None:
            for suspension, copies in enumerate(state.ready):
                if copies:
                    yield Turn(actor, suspension, ("lease", holder), None, takes=True)
            return
        verb, current = worker.plan[0], worker.current
        if verb.startswith("report "):
            yield Turn(actor, len(state.records) - 1, (verb, holder), None)
        elif not verb.startswith("run "):
            yield Turn(actor, worker.suspension, (verb, holder, current), None)
            if verb.startswith("checkpoint "):
                yield Turn(actor, worker.suspension, ("renew", holder, current), worker)
            if self._scenario.releases:
                yield Turn(actor, worker.suspension, ("release", holder, current), worker)

    def _pass_time(self, state: State, turns: list[Turn]) -> Iterator[Move]:
        """Move to the next moment of a change: nobody is about to commit, or one actor has read."""
        moments = (self._records.changes_in_ms[number] for number in state.records)
        passed_ms = min((one for one in moments if one is not None), default=None)
        if passed_ms is None:
            return
        yield f"{passed_ms} ms pass", self._later(state, passed_ms), False
        if state.delayed is None:
            for turn in turns:
                found = self._try(state.records[turn.suspension], turn.verb)
                if isinstance(found, Applied):
                    delayed = self._take(state, turn)._replace(delayed=self._delay(state, turn, found))
                    label = f"{self._name(turn.actor)} reads to {turn.verb[0]}, and {passed_ms} ms pass"
                    yield label, self._later(delayed, passed_ms), False

    def _later(self, state: State, passed_ms: int) -> State:
        records = tuple(self._records.later(number, passed_ms) for number in state.records)
        delayed = state.delayed
        if delayed is not None:
            after, following = (
                one if one < 0 else self._records.later(one, passed_ms)
                for one in (delayed.applied.after, delayed.applied.following)
            )
            delayed = delayed._replace(applied=delayed.applied._replace(after=after, following=following))
        return state._replace(records=records, delayed=delayed)

    def _take_turn(self, state: State, turn: Turn) -> Iterator[Move]:
        found = self._try(state.records[turn.suspension], turn.verb)
        if not isinstance(found, Applied):
            why = found.error if found is not None else "nothing to do"
            refused = remember(self._take(state, turn), turn.actor, turn.refused)
            if refused != state:
                yield f"{self._name(turn.actor)}: {turn.verb[0]}: {why}", refused, False
        elif state.delayed is None or not self._scenario.compares:
            yield from self._commit(self._take(state, turn), *self._delay(state, turn, found))

    def _take(self, state: State, turn: Turn) -> State:
        if not turn.takes:
            return state
        if turn.verb[0] == "take_back":
            return state._replace(handed=replace_at(state.handed, turn.verb[1], None))
        return state._replace(ready=replace_at(state.ready, turn.suspension, state.ready[turn.suspension] - 1))

    def _delay(self, state: State, turn: Turn, applied: Applied) -> DelayedCommit:
        verb, next_memory = turn.verb[0], turn.refused
        if verb == "lease":
            next_memory = WorkerState(turn.suspension, True, applied.plan)
        elif verb == "release":
            next_memory = None
        elif turn.actor in self._workers and verb != "renew":
            worker = state.memory[turn.actor]
            next_memory = worker._replace(plan=worker.plan[1:]) if worker.plan[1:] else None
        return DelayedCommit(turn.actor, turn.suspension, verb, applied, next_memory)

    def _commit(
        self, state: State, actor: int, suspension: int, verb: str, applied: Applied, next_memory: Any
    ) -> Iterator[Move]:
        """Compare and swap. After a lost reply the actor repeats the same commit."""
        is_ended = self._records.known[state.records[suspension]][0].status in FINAL
        if is_ended and not verb.startswith(AFTER_THE_END):  # `invariants.py` says what they may change
            raise InvariantViolation(f"an ended suspension was overwritten by {verb}.")
        records, ready, last = replace_at(state.records, suspension, applied.after), state.ready, suspension
        if applied.following >= 0:
            records, last = (*records, applied.following), len(records)
        if applied.ready:
            ready = replace_at(ready, last, min(ready[last] + 1, self._scenario.copies))
        delayed = state.delayed if state.delayed is not None and state.delayed.actor != actor else None
        committed = state._replace(records=records, ready=ready, delayed=delayed)
        if verb == "lease":
            committed = fence_off(committed, self._workers, actor, suspension)
        if applied.handed is not None:
            place, entry = applied.handed[0], Handed(suspension, True, applied.handed[1])
            committed = committed._replace(handed=replace_at(committed.handed, place, entry))
        label = f"{self._name(actor)} commits {verb}"
        yield label, self._settle(remember(committed, actor, next_memory)), False
        if state.crashes and state.memory[actor] is not None:
            yield f"{label}, the reply is lost", self._settle(committed._replace(crashes=state.crashes - 1)), True

    def _work_or_crash(self, state: State, actor: int) -> Iterator[Move]:
        worker, delayed, name = state.memory[actor], state.delayed, self._name(actor)
        is_delayed = delayed is not None and delayed.actor == actor
        if worker is not None and not is_delayed and worker.plan[0].startswith("run "):
            yield f"{name} starts {worker.plan[0][4:]}", self._start(state, actor, worker), False
        if state.crashes and (worker is not None or is_delayed):
            crashed = state._replace(crashes=state.crashes - 1, delayed=None if is_delayed else delayed)
            yield f"{name} crashes", remember(crashed, actor, None), True
        if state.crashes and worker is None and actor == self._workers.start:
            for suspension, copies in enumerate(state.ready):
                if copies:
                    ready = replace_at(state.ready, suspension, copies - 1)
                    lost = state._replace(crashes=state.crashes - 1, ready=ready)
                    yield f"the id of {suspension} is lost", lost, True

    def _start(self, state: State, actor: int, worker: WorkerState) -> State:
        """I3, I11: a call that is not idempotent is started at most once."""
        call = worker.plan[0].removeprefix("run ")
        place = worker.suspension * len(self._calls) + self._calls.index(call)
        count = state.ran[place] + 1
        if count > 1 and not self._scenario.idempotent(call):
            raise InvariantViolation(f"the call of {call} was started twice.")
        started = state._replace(ran=replace_at(state.ran, place, min(count, 2)))
        return self._settle(remember(started, actor, worker._replace(plan=worker.plan[1:])))

    def _settle(self, state: State) -> State:
        """Mark the actors that can only be refused from now on as refused."""
        for actor, holder in zip(self._workers, self._scenario.workers, strict=True):
            worker = state.memory[actor]
            if worker is None or worker.plan[0].startswith(("run ", "report ")):
                continue
            number = state.records[worker.suspension]
            if not worker.current or self._records.ended[number]:
                if isinstance(self._try(number, (worker.plan[0], holder, worker.current)), Applied):
                    raise InvariantViolation(f"{self._name(actor)} can {worker.plan[0]} without a lease.")
                late = worker.plan[0].removeprefix("checkpoint ").split() if "checkpoint " in worker.plan[0] else ()
                reports = tuple(f"report {key}" for key in late)
                state = remember(state, actor, WorkerState(worker.suspension, False, reports) if reports else None)
        for actor in self._reviewers:
            done, steps = state.memory[actor], self._scenario.reviewers[actor]
            while done < len(steps) and steps[done].suspension < len(state.records):
                number = state.records[steps[done].suspension]
                if not self._is_closed(number, steps[done].item_id):
                    break
                self._try(number, ("review", actor, done))
                done += 1
            state = remember(state, actor, done)
        return state

    def _is_closed(self, number: int, item_id: str) -> bool:
        record, _ = self._records.known[number]
        return self._records.ended[number] or not find_item(record, item_id).open

    def _try(self, number: int, verb: tuple[Any, ...]) -> Applied | Refused | None:
        """Apply a transition once; None when it changes nothing."""
        key = (number, *verb)
        if key not in self._results:
            self._results[key] = self._apply(number, verb)
        return self._results[key]

    def _apply(self, number: int, verb: tuple[Any, ...]) -> Applied | Refused | None:
        record, now_ms = self._records.known[number]
        fence = None
        if len(verb) == 3 and verb[0] != "review":
            attempt = record.lease.attempt if record.lease else 0
            holder = self._scenario.workers[verb[1]] if verb[0] == "take_back" else verb[1]
            fence = Fence(holder, attempt if verb[2] else attempt - 1, self._scenario.lease_ms)
        try:
            name, change = self._scenario.apply(record, now_ms, verb, fence)
        except SaysoError as error:
            if isinstance(error, AlreadyDecided) and verb[0] == "review":
                step = self._scenario.reviewers[verb[1]][verb[2]]
                check_decided_by(record, step.item_id, self._name(verb[1]), error)
            self._explored.refusals.add(type(error).__name__)
            return Refused(type(error).__name__)
        self._check(Step(name, record, change, now_ms, fence))
        if change.record is record:
            if verb[0] == "tick" and self._records.due[number]:
                raise InvariantViolation("a suspension is due and a tick changes nothing.")
            return None
        handed = None
        if len(verb) == 4:
            found = hand_over(self._scenario, change, verb[3], now_ms)
            if found is None:
                return Refused("nothing to hand over")
            self._check(found[0])
            change = found[0].change
            handed = self._scenario.workers.index(verb[3]), found[1]
        following = self._records.number(change.following, now_ms) if change.following else -1
        plan = self._scenario.plan(change.record, now_ms) if name == "lease" else ()
        return Applied(self._records.number(change.record, now_ms), following, change.ready, plan, handed)

    def _check(self, step: Step) -> None:
        if violation := find_violation(step):
            raise InvariantViolation(f"{violation}.")
        record = step.change.record
        events = {event.type for event in step.change.events}
        rows = rows_of(step.verb, record)
        self._explored.rows |= {row for row in rows if len(rows) == 1 or events & LEGAL[row].events}
        self._explored.events |= events
        if record.end is not None:
            self._explored.ends.add(record.end.status)

    def _describe(self, paths: list[tuple[int, str]], states: list[State], at: int) -> str:
        records = [self._records.known[number][0] for number in states[at].records]
        return describe_path(self._scenario.name, paths, records, at)

    def _name(self, actor: int) -> str:
        if actor in self._reviewers:
            return f"reviewer {actor + 1}"
        if actor in self._workers:
            return f"worker {actor - self._workers.start + 1}"
        return "clock" if actor == self._clock else "owner"
