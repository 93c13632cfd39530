"""The checker accepts a recorded experiment and names each fault planted into it."""

from collections.abc import Callable

import pytest

from sayso.core.records.events import EventType
from sayso.core.transitions.legal import LEGAL
from tests.chaos.checking.faults import PLANTED
from tests.chaos.checking.invariants import INVARIANTS
from tests.chaos.checking.steps import MOVES, OF_STEPS
from tests.chaos.checking.tampering import Evidence, read_evidence


@pytest.fixture
def evidence() -> Evidence:
    return read_evidence()


def test_check_evidence_finds_nothing_in_a_sound_experiment(evidence: Evidence) -> None:
    check = evidence.check()

    assert [str(found) for found in check.contradictions] == []
    assert check.runs.total() == len(evidence.trails)
    assert check.in_doubt.total() > 0


@pytest.mark.parametrize(("plant", "invariant"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_check_evidence_names_a_planted_fault(
    evidence: Evidence, plant: Callable[[Evidence], None], invariant: str
) -> None:
    plant(evidence)

    found = [one for one in evidence.check().contradictions if one.invariant == invariant]

    assert found, "the checker missed the fault"
    assert found[0].run_id in found[0].history


def test_every_invariant_has_a_planted_fault() -> None:
    assert set(PLANTED.values()) == set(INVARIANTS)


def test_moves_are_legal_steps() -> None:
    for kind, targets in MOVES.items():
        steps = [step for step in LEGAL.values() if kind in step.events]
        assert all(any(target in step.targets for step in steps) for target in targets), kind
    assert {EventType.TOOL_COMPLETED, EventType.POLICY_DECISION, EventType.WARNING}.isdisjoint(OF_STEPS)
