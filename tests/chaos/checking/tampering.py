"""A recorded experiment, and tools to tamper with its evidence."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sayso.core.records.events import Event, EventType, TrailEntry, TrailHead
from sayso.core.records.suspensions import RunStatus
from tests.chaos.checking.checker import CheckResult, check_evidence
from tests.chaos.checking.history import History, TrailIndex, index_trail
from tests.chaos.evidence.client_log import Exchange, read_log
from tests.chaos.evidence.effects import EffectLine, read_effects
from tests.chaos.evidence.freezes import FreezeLine, read_freezes
from tests.chaos.evidence.provider_log import ProviderLine, read_provider
from tests.chaos.evidence.trails import Trail, read_trails
from tests.chaos.workload.plans import plan_run
from tests.trails import append_events

RECORDED = Path(__file__).with_name("recorded")


@dataclass
class Evidence:
    """Evidence that tests change."""

    exchanges: list[Exchange]
    trails: list[Trail]
    effects: list[EffectLine]
    freezes: list[FreezeLine]
    provider: list[ProviderLine]

    def check(self) -> CheckResult:
        return check_evidence(self.exchanges, self.trails, self.effects, self.freezes, self.provider)

    def histories(self) -> Iterator[History]:
        """Yield the trail and the provider's lines of each run."""
        plan = plan_run(0, 0)
        for trail in self.trails:
            suspended = index_trail(trail.entries).suspended
            lines = [line for line in self.provider if line.suspension_id in suspended]
            yield History(plan, trail, provider=lines)

    def find(self, wanted: Callable[[Trail, TrailIndex], bool]) -> tuple[int, TrailIndex]:
        """Return the first run that fits: its place and its index."""
        for place, trail in enumerate(self.trails):
            index = index_trail(trail.entries)
            if wanted(trail, index):
                return place, index
        raise LookupError("no recorded run fits")

    def rewrite(self, place: int, change: Callable[[TrailEntry], list[TrailEntry]]) -> None:
        """Change the entries of a trail and chain them anew."""
        trail = self.trails[place]
        head, entries = TrailHead(), []
        for one in [new for old in trail.entries for new in change(old)]:
            head, chained = append_events(head, (Event(EventType(one.type), one.data),), one.at_ms)
            entries += chained
        self.trails[place] = trail.model_copy(update={"entries": tuple(entries)})

    def starts_of(self, run_id: str) -> Iterator[tuple[int, EffectLine]]:
        for place, line in enumerate(self.effects):
            if line.run_id == run_id and line.what == "start":
                yield place, line


def read_evidence() -> Evidence:
    """Return a copy of the recorded evidence."""
    exchanges, trails = list(read_log(RECORDED)), list(read_trails(RECORDED))
    effects, freezes = list(read_effects(RECORDED)), list(read_freezes(RECORDED))
    return Evidence(exchanges, trails, effects, freezes, list(read_provider(RECORDED)))


def drop(*kinds: EventType) -> Callable[[TrailEntry], list[TrailEntry]]:
    return lambda entry: [] if entry.type in kinds else [entry]


def twice(kind: EventType) -> Callable[[TrailEntry], list[TrailEntry]]:
    return lambda entry: [entry, entry] if entry.type == kind else [entry]


def with_data(entry: TrailEntry, **update: Any) -> TrailEntry:
    return entry.model_copy(update={"data": {**entry.data, **update}})


def completed(trail: Trail, _index: TrailIndex) -> bool:
    return trail.status is RunStatus.COMPLETED


def was_decided(trail: Trail, index: TrailIndex) -> bool:
    return completed(trail, index) and len(index.decisions) == 1 and len(index.items) == 1


def was_denied(trail: Trail, index: TrailIndex) -> bool:
    return was_decided(trail, index) and index.decisions[0].action == "deny"


def was_approved(trail: Trail, index: TrailIndex) -> bool:
    return was_decided(trail, index) and index.decisions[0].action == "approve"
