"""The checker finds nothing in a storm that was recorded, and names each fault that is planted into it."""

from collections.abc import Callable

import pytest

from sayso.records.events import EventType
from sayso.transitions.table import LEGAL
from tests.chaos.faults import PLANTED, Evidence, read_evidence
from tests.chaos.invariants import INVARIANTS
from tests.chaos.steps import MOVES, OF_STEPS


@pytest.fixture
def evidence() -> Evidence:
    return read_evidence()


def test_nothing_contradicts_in_a_storm_that_went_well(evidence: Evidence) -> None:
    judged = evidence.check()

    assert [str(found) for found in judged.contradictions] == []
    assert judged.runs.total() == len(evidence.trails)
    assert judged.doubted.total() > 0


@pytest.mark.parametrize(("plant", "invariant"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_fault_is_named_with_the_runs_whole_history(
    evidence: Evidence, plant: Callable[[Evidence], None], invariant: str
) -> None:
    plant(evidence)

    found = [one for one in evidence.check().contradictions if one.invariant == invariant]

    assert found, "the checker did not notice"
    assert found[0].run_id in found[0].history


def test_every_invariant_has_a_fault_that_is_planted_against_it() -> None:
    assert set(PLANTED.values()) == set(INVARIANTS)


def test_every_move_in_the_checkers_table_is_one_of_the_legal_steps() -> None:
    for kind, targets in MOVES.items():
        steps = [step for step in LEGAL.values() if kind in step.events]
        assert all(any(target in step.targets for step in steps) for target in targets), kind
    assert {EventType.TOOL_COMPLETED, EventType.POLICY_DECISION, EventType.WARNING}.isdisjoint(OF_STEPS)
