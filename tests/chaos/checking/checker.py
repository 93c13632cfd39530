"""Check evidence that no process can forge alone: client log, trails, effects, freezes and the provider's log.

Every contradiction comes with the whole history of its run.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from tests.chaos.checking.cards import count_late
from tests.chaos.checking.causes import count_causes
from tests.chaos.checking.history import History
from tests.chaos.checking.invariants import INVARIANTS
from tests.chaos.evidence.client_log import Exchange
from tests.chaos.evidence.effects import EffectLine
from tests.chaos.evidence.freezes import FreezeLine
from tests.chaos.evidence.provider_log import ProviderLine
from tests.chaos.evidence.trails import Trail
from tests.chaos.workload.plans import Plan

INVENTED = "I6 nothing is invented"
LOST = "I6 nothing confirmed is lost"

Line = TypeVar("Line")
Key = TypeVar("Key")


@dataclass(frozen=True)
class Contradiction:
    """Evidence against an invariant."""

    invariant: str
    run_id: str
    sentence: str
    history: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.sentence}\n{self.history}"


@dataclass(frozen=True)
class CheckResult:
    """The contradictions and the figures of an experiment."""

    contradictions: tuple[Contradiction, ...]
    runs: Counter[str]
    in_doubt: Counter[str]
    causes: Counter[str]
    answers: Counter[str]
    cards: Counter[str]


def check_evidence(
    exchanges: Iterable[Exchange],
    trails: Iterable[Trail],
    effects: Iterable[EffectLine],
    freezes: Iterable[FreezeLine] = (),
    provider: Iterable[ProviderLine] = (),
) -> CheckResult:
    """Compare the evidence of all runs."""
    frozen = tuple(freezes)
    exchanges_of = _group(exchanges, lambda exchange: exchange.run)
    effects_of = _group(effects, lambda line: line.run_id)
    cards_of = _group(provider, lambda line: line.suspension_id)
    cards = Counter(str(line.what) for lines in cards_of.values() for line in lines)
    number_of = {run_id: number for number, group in exchanges_of.items() for run_id in _find_started(group)}
    answers = Counter(_classify_answer(exchange) for group in exchanges_of.values() for exchange in group)
    contradictions = list(_find_shared_keys(effects_of))
    runs: Counter[str] = Counter()
    in_doubt: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for trail in trails:
        group = exchanges_of.pop(number_of.get(trail.run_id, -1), None)
        if group is None:
            contradictions.append(Contradiction(INVENTED, trail.run_id, "nobody started this run", str(trail)))
            continue
        history = History(_plan_of(group), trail, group, effects_of.pop(trail.run_id, []), frozen)
        history.provider = [line for one in history.index.suspended for line in cards_of.pop(one, [])]
        contradictions += check_run(history)
        runs[trail.status] += 1
        cards["late"] += count_late(history)
        found = count_causes(history)
        in_doubt[trail.status] += bool(found)
        causes += found
    contradictions += _find_strays(exchanges_of, effects_of)
    contradictions += [
        Contradiction(INVENTED, one, f"{lines[0].person} got a card of an unknown suspension", _dump(lines))
        for one, lines in cards_of.items()
    ]
    return CheckResult(tuple(contradictions), runs, in_doubt, causes, answers, cards)


def check_run(history: History) -> Iterator[Contradiction]:
    """Yield the contradictions in the history of one run."""
    for name, invariant in INVARIANTS.items():
        for sentence in invariant(history):
            yield Contradiction(name, history.trail.run_id, sentence, history.describe())


def _find_shared_keys(effects_of: dict[str, list[EffectLine]]) -> Iterator[Contradiction]:
    run_of: dict[str, str] = {}
    for run_id, lines in effects_of.items():
        for key in {line.key for line in lines}:
            if run_of.setdefault(key, run_id) != run_id:
                sentence = f"the runs {run_of[key]} and {run_id} share the idempotency key {key}"
                yield Contradiction("I3 one key per call", run_id, sentence, _dump(lines))


def _find_strays(
    exchanges_of: dict[int, list[Exchange]], effects_of: dict[str, list[EffectLine]]
) -> Iterator[Contradiction]:
    """Report evidence that belongs to no checked run."""
    for number, group in exchanges_of.items():
        started = sorted(_find_started(group))
        if started:
            sentence = f"the start of run {number} was confirmed, but it has no trail"
            yield Contradiction(LOST, started[0], sentence, _dump(group))
    for run_id, lines in effects_of.items():
        yield Contradiction(INVENTED, run_id, f"{lines[0].tool} ran for an unknown run", _dump(lines))


def _dump(lines: Sequence[BaseModel]) -> str:
    return "\n".join(line.model_dump_json() for line in lines)


def _find_started(group: list[Exchange]) -> set[str]:
    starts = (exchange for exchange in group if exchange.kind == "start" and exchange.confirmed)
    return {str(start.answer["id"]) for start in starts if isinstance(start.answer, dict)}


def _plan_of(group: list[Exchange]) -> Plan:
    start = next(exchange for exchange in group if exchange.kind == "start")
    return Plan.model_validate_json(str(start.body["input"]))


def _classify_answer(exchange: Exchange) -> str:
    return f"{exchange.kind} {exchange.status or 'no reply'}"


def _group(lines: Iterable[Line], key_of: Callable[[Line], Key]) -> dict[Key, list[Line]]:
    groups: dict[Key, list[Line]] = defaultdict(list)
    for line in lines:
        groups[key_of(line)].append(line)
    return dict(groups)
