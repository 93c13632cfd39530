"""Judge a storm by three inputs that nobody can fake together: client log, trails, and what the tools really did.

Plain functions; the first contradiction of a run is told with the run's whole history.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from storm.effects import EffectLine
from storm.histories import History
from storm.invariants import INVARIANTS
from storm.logs import Said
from storm.plans import Plan
from storm.trails import Trail

UNKNOWN_RUN = "I6 nothing is invented"
LOST_RUN = "I6 nothing confirmed is lost"


@dataclass(frozen=True)
class Contradiction:
    """One thing that cannot be if Sayso keeps its promises."""

    invariant: str
    run_id: str
    sentence: str
    history: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.sentence}\n{self.history}"


@dataclass(frozen=True)
class Verdict:
    """What the checker found: everything that contradicts, and how the runs came out."""

    contradictions: tuple[Contradiction, ...]
    runs: Counter[str]
    in_doubt: int
    answers: Counter[str]


def check_storm(said: Iterable[Said], trails: Iterable[Trail], effects: Iterable[EffectLine]) -> Verdict:
    """Return what contradicts what, over all runs."""
    said_in, effects_of = _by_run(said), _by_run_id(effects)
    contradictions: list[Contradiction] = []
    statuses: Counter[str] = Counter()
    answers: Counter[str] = Counter(_sort_answer(one) for one_run in said_in.values() for one in one_run)
    doubts = 0
    for trail in trails:
        number = _number_of(trail, said_in)
        if number is None:
            contradictions.append(Contradiction(UNKNOWN_RUN, trail.run_id, "nobody asked for this run", ""))
            continue
        own = said_in.pop(number)
        history = History(_plan_of(own), trail, own, effects_of.pop(trail.run_id, []))
        contradictions += check_run(history)
        statuses[trail.status] += 1
        doubts += any(asked.about_doubt for asked in history.reading.asked.values())
    contradictions += _find_strays(said_in, effects_of)
    return Verdict(tuple(contradictions), statuses, doubts, answers)
