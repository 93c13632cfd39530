"""An explorer of every interleaving of the actors around one run, which checks the invariants.

Every actor reads the record, applies its transition to it, and commits if nobody was faster; else it reads again.
Between any two of these steps every other actor may act, time may pass, and an actor may crash: it loses its memory, or
the reply to its commit.

Three reductions keep the number of states small without losing an outcome:

- The store lets one commit win and makes all others read again, so at most one of the actors that have read will
commit. Only that one is kept, and only if time passes between its read and its commit. - An actor that can only be
refused from now on (an expired worker, a reviewer of a decided item) is done. - An id that a worker has popped but not
leased stays on the ready list, unless that worker crashes.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

from sayso.errors import AlreadyDecided, SaysoError
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.transitions.deciding import find_item, suspend
from sayso.transitions.execution import Fence
from sayso.transitions.table import LEGAL
from tests.proofs.explorer_states import (
    Breach,
    Driving,
    Explored,
    Move,
    Pending,
    Refused,
    Slow,
    State,
    Turn,
    put,
    set_at,
)
from tests.proofs.invariants import OVER, Tried, find_breach, rows_of
from tests.proofs.record_states import Stands
from tests.proofs.scenarios import UNASKED, Scenario
from tests.sayso.samples import T0


class Explorer:
    """An exploration of one scenario from its first state."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._explored = Explored()
        self._stands = Stands()
        self._tried: dict[tuple[Any, ...], Pending | Refused | None] = {}
        reviewers, workers = len(scenario.words), len(scenario.workers)
        self._reviewers = range(reviewers)
        self._workers = range(reviewers, reviewers + workers)
        self._clock = reviewers + workers
        self._owner = self._clock + 1
        self._calls = (UNASKED, *(f"i{place}" for place in range(1, max(1, len(scenario.drafts)) + 1)))

    def explore(self) -> Explored:
        """Visit every reachable state; raises `Breach` for a broken invariant, or a run that cannot end."""
        begun = self._begin()
        numbers, states = {begun: 0}, [begun]
        ways: list[tuple[int, str]] = [(-1, "")]
        sources: list[list[int]] = [[]]
        at = 0
        while at < len(states):
            try:
                for label, state, fault in self._moves(states[at]):
                    self._explored.moves += 1
                    number = numbers.setdefault(state, len(states))
                    if number == len(states):
                        states.append(state)
                        ways.append((at, label))
                        sources.append([])
                    if not fault:
                        sources[number].append(at)
            except Breach as breach:
                raise Breach(f"{breach} {self._describe_way(ways, states, at)}") from None
            at += 1
        self._explored.states, self._explored.stands = len(states), len(self._stands.known)
        if (stuck := self._find_stuck(states, sources)) is not None:
            raise Breach(f"the run can never end from here. {self._describe_way(ways, states, stuck)}")
        return self._explored

    def _begin(self) -> State:
        change = suspend(self._scenario.begin(), (), T0)
        self._check(Tried("suspend", None, change, T0))
        return State(
            stands=(self._stands.number(change.record, T0),),
            ready=(1,) + (0,) * (self._scenario.pauses - 1),
            knows=(*(0 for _ in self._reviewers), *(None for _ in self._workers), None, 0),
            ran=(0,) * (self._scenario.pauses * len(self._calls)),
            crashes=self._scenario.crashes,
        )

    def _moves(self, state: State) -> Iterator[Move]:
        turns = list(self._turns(state))
        yield from self._pass_time(state, turns)
        if state.slow is not None:
            yield from self._commit(state, *state.slow)
        for turn in turns:
            yield from self._take_turn(state, turn)
        for actor in self._workers:
            yield from self._work_or_crash(state, actor)

    # Who may do what

    def _turns(self, state: State) -> Iterator[Turn]:
        """Return every step that an actor may take now, except a slow one."""
        busy = state.slow.actor if state.slow is not None else None
        for actor in self._reviewers:
            said, words = state.knows[actor], self._scenario.words[actor]
            if actor != busy and said < len(words) and words[said].pause < len(state.stands):
                yield Turn(actor, words[said].pause, ("say", actor, said), said + 1)
        for actor, holder in zip(self._workers, self._scenario.workers, strict=True):
            if actor != busy:
                yield from self._worker_turns(state, actor, holder)
        if self._clock != busy:
            for pause, stand in enumerate(state.stands):
                if self._stands.due[stand]:
                    yield Turn(self._clock, pause, ("look",), None)
        done, last = state.knows[self._owner], len(state.stands) - 1
        if self._owner != busy and done < len(self._scenario.deeds):
            deed = self._scenario.deeds[done]
            if deed != "revive" or self._stands.known[state.stands[last]][0].status is Status.FAILED:
                yield Turn(self._owner, last, (deed,), done + 1)

    def _worker_turns(self, state: State, actor: int, holder: str) -> Iterator[Turn]:
        driving = state.knows[actor]
        if driving is None:
            for pause, copies in enumerate(state.ready):
                if copies:
                    yield Turn(actor, pause, ("lease", holder), None, takes=True)
            return
        doing, current = driving.plan[0], driving.current
        if doing.startswith("report "):
            yield Turn(actor, len(state.stands) - 1, (doing, holder), None)
        elif not doing.startswith("run "):
            yield Turn(actor, driving.pause, (doing, holder, current), None)
            if doing.startswith("checkpoint "):
                yield Turn(actor, driving.pause, ("renew", holder, current), driving)
            if self._scenario.releases:
                yield Turn(actor, driving.pause, ("release", holder, current), driving)

    def _pass_time(self, state: State, turns: list[Turn]) -> Iterator[Move]:
        """Move to the next moment of a change: nobody is about to commit, or one actor has read."""
        moments = (self._stands.changes_in_ms[stand] for stand in state.stands)
        passed_ms = min((one for one in moments if one is not None), default=None)
        if passed_ms is None:
            return
        yield f"{passed_ms} ms pass", self._later(state, passed_ms), False
        if state.slow is None:
            for turn in turns:
                found = self._try(state.stands[turn.pause], turn.verb)
                if isinstance(found, Pending):
                    looked = self._take(state, turn)._replace(slow=self._slow(state, turn, found))
                    label = f"{self._name(turn.actor)} looks to {turn.verb[0]}, and {passed_ms} ms pass"
                    yield label, self._later(looked, passed_ms), False

    def _later(self, state: State, passed_ms: int) -> State:
        stands = tuple(self._stands.later(stand, passed_ms) for stand in state.stands)
        slow = state.slow
        if slow is not None:
            after, following = (
                one if one < 0 else self._stands.later(one, passed_ms)
                for one in (slow.pending.after, slow.pending.following)
            )
            slow = slow._replace(pending=slow.pending._replace(after=after, following=following))
        return state._replace(stands=stands, slow=slow)

    def _take_turn(self, state: State, turn: Turn) -> Iterator[Move]:
        found = self._try(state.stands[turn.pause], turn.verb)
        if not isinstance(found, Pending):
            why = found.error if found is not None else "nothing to do"
            refused = put(self._take(state, turn), turn.actor, turn.refused)
            if refused != state:
                yield f"{self._name(turn.actor)}: {turn.verb[0]}: {why}", refused, False
        elif state.slow is None or not self._scenario.compares:
            yield from self._commit(self._take(state, turn), *self._slow(state, turn, found))

    def _take(self, state: State, turn: Turn) -> State:
        if not turn.takes:
            return state
        return state._replace(ready=set_at(state.ready, turn.pause, state.ready[turn.pause] - 1))

    def _slow(self, state: State, turn: Turn, pending: Pending) -> Slow:
        doing, onwards = turn.verb[0], turn.refused
        if doing == "lease":
            onwards = Driving(turn.pause, True, pending.plan)
        elif doing == "release":
            onwards = None
        elif turn.actor in self._workers and doing != "renew":
            driving = state.knows[turn.actor]
            onwards = driving._replace(plan=driving.plan[1:]) if driving.plan[1:] else None
        return Slow(turn.actor, turn.pause, doing, pending, onwards)

    def _commit(
        self, state: State, actor: int, pause: int, doing: str, pending: Pending, onwards: Any
    ) -> Iterator[Move]:
        """Compare and swap. After a lost reply the actor repeats the same commit."""
        if self._stands.known[state.stands[pause]][0].status in OVER:
            raise Breach(f"what had ended was overwritten by a {doing}.")
        stands, ready, last = set_at(state.stands, pause, pending.after), state.ready, pause
        if pending.following >= 0:
            stands, last = (*stands, pending.following), len(stands)
        if pending.ready:
            ready = set_at(ready, last, min(ready[last] + 1, self._scenario.copies))
        slow = state.slow if state.slow is not None and state.slow.actor != actor else None
        committed = state._replace(stands=stands, ready=ready, slow=slow)
        if doing == "lease":
            committed = self._fence_off(committed, actor, pause)
        label = f"{self._name(actor)} commits {doing}"
        yield label, self._settle(put(committed, actor, onwards)), False
        if state.crashes and state.knows[actor] is not None:
            yield f"{label}, the reply is lost", self._settle(committed._replace(crashes=state.crashes - 1)), True

    def _fence_off(self, state: State, leased: int, pause: int) -> State:
        for actor in self._workers:
            driving = state.knows[actor]
            if actor != leased and driving is not None and driving.pause == pause:
                state = put(state, actor, driving._replace(current=False))
        return state

    def _work_or_crash(self, state: State, actor: int) -> Iterator[Move]:
        driving, slow, name = state.knows[actor], state.slow, self._name(actor)
        is_slow = slow is not None and slow.actor == actor
        if driving is not None and not is_slow and driving.plan[0].startswith("run "):
            yield f"{name} starts {driving.plan[0][4:]}", self._start(state, actor, driving), False
        if state.crashes and (driving is not None or is_slow):
            crashed = state._replace(crashes=state.crashes - 1, slow=None if is_slow else slow)
            yield f"{name} crashes", put(crashed, actor, None), True
        if state.crashes and driving is None and actor == self._workers.start:
            for pause, copies in enumerate(state.ready):
                if copies:
                    ready = set_at(state.ready, pause, copies - 1)
                    yield f"the id of {pause} is lost", state._replace(crashes=state.crashes - 1, ready=ready), True

    def _start(self, state: State, actor: int, driving: Driving) -> State:
        """I3, I11: a call that is not idempotent is started at most once, whatever happens."""
        call = driving.plan[0].removeprefix("run ")
        place = driving.pause * len(self._calls) + self._calls.index(call)
        count = state.ran[place] + 1
        if count > 1 and not self._scenario.idempotent(call):
            raise Breach(f"the call of {call} was started twice.")
        started = state._replace(ran=set_at(state.ran, place, min(count, 2)))
        return self._settle(put(started, actor, driving._replace(plan=driving.plan[1:])))

    def _settle(self, state: State) -> State:
        """Mark the actors that can only be refused from now on as refused."""
        for actor, holder in zip(self._workers, self._scenario.workers, strict=True):
            driving = state.knows[actor]
            if driving is None or driving.plan[0].startswith(("run ", "report ")):
                continue
            stand = state.stands[driving.pause]
            if not driving.current or self._stands.ended[stand]:
                if isinstance(self._try(stand, (driving.plan[0], holder, driving.current)), Pending):
                    raise Breach(f"{self._name(actor)} can {driving.plan[0]} and its lease is over.")
                late = driving.plan[0].removeprefix("checkpoint ").split() if "checkpoint " in driving.plan[0] else ()
                reports = tuple(f"report {key}" for key in late)
                state = put(state, actor, Driving(driving.pause, False, reports) if reports else None)
        for actor in self._reviewers:
            said, words = state.knows[actor], self._scenario.words[actor]
            while said < len(words) and words[said].pause < len(state.stands):
                stand = state.stands[words[said].pause]
                if not self._is_closed(stand, words[said].item_id):
                    break
                self._try(stand, ("say", actor, said))
                said += 1
            state = put(state, actor, said)
        return state

    def _is_closed(self, stand: int, item_id: str) -> bool:
        record, _ = self._stands.known[stand]
        return self._stands.ended[stand] or not find_item(record, item_id).open

    # What a verb comes to

    def _try(self, stand: int, verb: tuple[Any, ...]) -> Pending | Refused | None:
        """Apply a transition once; None when it changes nothing."""
        key = (stand, *verb)
        if key not in self._tried:
            self._tried[key] = self._apply(stand, verb)
        return self._tried[key]

    def _apply(self, stand: int, verb: tuple[Any, ...]) -> Pending | Refused | None:
        record, now_ms = self._stands.known[stand]
        fence = None
        if len(verb) == 3 and verb[0] != "say":
            attempt = record.lease.attempt if record.lease else 0
            fence = Fence(verb[1], attempt if verb[2] else attempt - 1, self._scenario.lease_ms)
        try:
            name, change = self._scenario.apply(record, now_ms, verb, fence)
        except SaysoError as error:
            self._check_told(record, verb, error)
            self._explored.refusals.add(type(error).__name__)
            return Refused(type(error).__name__)
        self._check(Tried(name, record, change, now_ms, fence))
        if change.record is record:
            if verb[0] == "look" and self._stands.due[stand]:
                raise Breach("the clock is called and finds nothing to do, again and again.")
            return None
        following = self._stands.number(change.following, now_ms) if change.following else -1
        plan = self._scenario.plan(change.record, now_ms) if name == "lease" else ()
        return Pending(self._stands.number(change.record, now_ms), following, change.ready, plan)

    def _check(self, tried: Tried) -> None:
        if breach := find_breach(tried):
            raise Breach(f"{breach}.")
        record = tried.change.record
        told = {event.type for event in tried.change.events}
        rows = rows_of(tried.verb, record)
        self._explored.rows |= {row for row in rows if len(rows) == 1 or told & LEGAL[row].events}
        self._explored.told |= told
        if record.end is not None:
            self._explored.ends.add(record.end.status)

    def _check_told(self, record: SuspensionRecord, verb: tuple[Any, ...], error: SaysoError) -> None:
        """I1, I13: the second reviewer learns who was first."""
        if not isinstance(error, AlreadyDecided) or verb[0] != "say":
            return
        word = self._scenario.words[verb[1]][verb[2]]
        outcome = find_item(record, word.item_id).outcome
        first = outcome.by.id if outcome is not None else self._name(verb[1])
        if error.facts.get("decided_by") != first:
            raise Breach(f"a reviewer is told that {error.facts.get('decided_by')} decided; it was {first}.")

    # The end of the trail

    def _find_stuck(self, states: list[State], sources: list[list[int]]) -> int | None:
        """I2, I12: return a state from which the run can end only through a fault."""
        queue = deque(at for at, state in enumerate(states) if all(self._stands.ended[stand] for stand in state.stands))
        seen = bytearray(len(states))
        for at in queue:
            seen[at] = 1
        while queue:
            for source in sources[queue.popleft()]:
                if not seen[source]:
                    seen[source] = 1
                    queue.append(source)
        stuck = seen.find(0)
        return None if stuck < 0 else stuck

    def _describe_way(self, ways: list[tuple[int, str]], states: list[State], at: int) -> str:
        records = [self._stands.known[stand][0] for stand in states[at].stands]
        steps: list[str] = []
        while at > 0:
            at, label = ways[at]
            steps.append(label)
        where = ", ".join(f"{record.id} {record.status}" for record in records)
        return f"[{self._scenario.name}: {where}] The way there: {' > '.join(reversed(steps)) or 'none'}."

    def _name(self, actor: int) -> str:
        if actor in self._reviewers:
            return f"reviewer {actor + 1}"
        if actor in self._workers:
            return f"worker {actor - self._workers.start + 1}"
        return "clock" if actor == self._clock else "owner"
