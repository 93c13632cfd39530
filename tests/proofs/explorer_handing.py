"""Moves of runs that are handed to waiting workers, for the explorer.

A handed run is on its worker's own list. Either its worker takes it from there, or the clock does, or the entry is
lost. A worker may find that the calls must not start as they were handed over, so it may return the permits first.
"""

from collections.abc import Iterator

from sayso.core.records.suspensions import Change
from sayso.core.transitions.execution import WaitingWorker, forget_start
from tests.proofs.explorer_states import Handed, Move, State, Turn, WorkerState, remember, replace_at
from tests.proofs.invariants import Step
from tests.proofs.scenarios import Scenario

Plans = tuple[tuple[str, ...], ...]
"""The steps that the worker of a handed run may take, by its own choice."""


def hand_to_waiting(scenario: Scenario, state: State, workers: range, turn: Turn) -> Iterator[Turn]:
    """Yield a reviewer's step whose commit hands the run to each worker that waits, if the scenario hands runs over."""
    for actor, name in zip(workers, scenario.workers, strict=True):
        if scenario.hands and state.memory[actor] is None and state.handed[actor - workers.start] is None:
            yield turn._replace(verb=(*turn.verb, name))


def hand_over(scenario: Scenario, change: Change, holder: str, now_ms: int) -> tuple[Step, Plans] | None:
    """Return the second step of a commit that hands its run over, and the plans of the worker; None without one."""
    handed = scenario.transitions.hand_over(change, WaitingWorker(holder, scenario.lease_ms), now_ms)
    if not handed.handed_to:
        return None
    rest = scenario.plan(forget_start(handed.record), now_ms)
    begun = bool(handed.record.journal)
    starts = rest[1:] if begun and rest[0] == "redeem" else None
    plans = (("return_permits", *rest) if begun else rest, *((starts,) if starts else ()))
    added = handed._replace(events=handed.events[len(change.events) :])
    return Step("hand_over", change.record, added, now_ms), plans


def begin_handed(scenario: Scenario, change: Change, now_ms: int) -> tuple[Step | None, tuple[Handed | None, ...]]:
    """Return the step that hands a new run to the first worker, if the scenario hands runs over, and all lists."""
    found = hand_over(scenario, change, scenario.workers[0], now_ms) if scenario.hands else None
    rest = (None,) * (len(scenario.workers) - 1)
    return (found[0], (Handed(0, True, found[1]), *rest)) if found is not None else (None, (None, *rest))


def take_handed(state: State, workers: range, clock: int) -> Iterator[Turn]:
    """Yield the clock's steps on runs that their workers have not taken."""
    for place, entry in enumerate(state.handed):
        if entry is not None:
            yield Turn(clock, entry.suspension, ("take_back", place, entry.current), None, takes=True)


def pop_handed(state: State, workers: range) -> Iterator[Move]:
    """Yield the moves in which a worker takes its run, or nobody gets it."""
    for place, entry in enumerate(state.handed):
        if entry is None:
            continue
        without = state._replace(handed=replace_at(state.handed, place, None))
        actor, name = workers.start + place, f"worker {place + 1}"
        if state.memory[actor] is None and entry.current:
            for plan in entry.plans:
                taken = WorkerState(entry.suspension, True, plan)
                yield f"{name} takes what was handed to it, to {plan[0]}", remember(without, actor, taken), False
        if state.crashes:
            yield f"what {name} was handed is lost", without._replace(crashes=state.crashes - 1), True
