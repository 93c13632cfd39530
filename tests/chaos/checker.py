"""Judge a storm by inputs that nobody can fake together: client log, trails, what the tools did, what was frozen.

Plain functions; every contradiction of a run is told with the run's whole history.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from tests.chaos.causes import count_causes
from tests.chaos.effects import EffectLine
from tests.chaos.freezes import FreezeLine
from tests.chaos.histories import History
from tests.chaos.invariants import INVARIANTS
from tests.chaos.logs import Said
from tests.chaos.plans import Plan
from tests.chaos.trails import Trail

INVENTED = "I6 nothing is invented"
LOST = "I6 nothing confirmed is lost"

Line = TypeVar("Line")
Key = TypeVar("Key")


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
class Judgement:
    """What the checker found: everything that contradicts, how the runs came out, and what clients were answered."""

    contradictions: tuple[Contradiction, ...]
    runs: Counter[str]
    doubted: Counter[str]
    causes: Counter[str]
    answers: Counter[str]


def check_storm(
    said: Iterable[Said], trails: Iterable[Trail], effects: Iterable[EffectLine], freezes: Iterable[FreezeLine] = ()
) -> Judgement:
    """Return what contradicts what, over all runs."""
    frozen = tuple(freezes)
    said_in = _group(said, lambda one: one.run)
    effects_of = _group(effects, lambda line: line.run_id)
    number_of = {run_id: number for number, group in said_in.items() for run_id in _started_in(group)}
    answers = Counter(_sort_answer(one) for group in said_in.values() for one in group)
    contradictions = list(_find_shared_keys(effects_of))
    runs: Counter[str] = Counter()
    doubted: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for trail in trails:
        own = said_in.pop(number_of.get(trail.run_id, -1), None)
        if own is None:
            contradictions.append(Contradiction(INVENTED, trail.run_id, "nobody started this run", str(trail)))
            continue
        history = History(_plan_of(own), trail, own, effects_of.pop(trail.run_id, []), frozen)
        contradictions += check_run(history)
        runs[trail.status] += 1
        found = count_causes(history)
        doubted[trail.status] += bool(found)
        causes += found
    contradictions += _find_strays(said_in, effects_of)
    return Judgement(tuple(contradictions), runs, doubted, causes, answers)


def check_run(history: History) -> Iterator[Contradiction]:
    """Yield whatever contradicts an invariant in one run's history."""
    for name, invariant in INVARIANTS.items():
        for sentence in invariant(history):
            yield Contradiction(name, history.trail.run_id, sentence, history.tell())


def _find_shared_keys(effects_of: dict[str, list[EffectLine]]) -> Iterator[Contradiction]:
    run_of: dict[str, str] = {}
    for run_id, lines in effects_of.items():
        for key in {line.key for line in lines}:
            if run_of.setdefault(key, run_id) != run_id:
                sentence = f"the runs {run_of[key]} and {run_id} share the idempotency key {key}"
                yield Contradiction("I3 one key a call", run_id, sentence, _tell(lines))


def _find_strays(said_in: dict[int, list[Said]], effects_of: dict[str, list[EffectLine]]) -> Iterator[Contradiction]:
    """What is left when every run has been looked at belongs to a run that is not there."""
    for number, group in said_in.items():
        started = sorted(_started_in(group))
        if started:
            sentence = f"the start of run {number} was confirmed, but there is no trail"
            yield Contradiction(LOST, started[0], sentence, _tell(group))
    for run_id, lines in effects_of.items():
        yield Contradiction(INVENTED, run_id, f"{lines[0].tool} ran for a run that is not there", _tell(lines))


def _tell(lines: Sequence[BaseModel]) -> str:
    return "\n".join(line.model_dump_json() for line in lines)


def _started_in(group: list[Said]) -> set[str]:
    done = (one for one in group if one.kind == "start" and one.done)
    return {str(one.answer["id"]) for one in done if isinstance(one.answer, dict)}


def _plan_of(group: list[Said]) -> Plan:
    start = next(one for one in group if one.kind == "start")
    return Plan.model_validate_json(str(start.body["input"]))


def _sort_answer(said: Said) -> str:
    return f"{said.kind} {said.status or 'no reply'}"


def _group(lines: Iterable[Line], key_of: Callable[[Line], Key]) -> dict[Key, list[Line]]:
    groups: dict[Key, list[Line]] = defaultdict(list)
    for line in lines:
        groups[key_of(line)].append(line)
    return dict(groups)
