"""Tests of the demo's checks."""

import pytest
from pydantic import JsonValue

from demo.agents import Effect
from demo.checks import CALLS, EXPECTED, find_faults
from sayso.core.records.events import Event, EventType, TrailEntry, TrailHead
from tests.trails import append_events

KINDS = [
    EventType.TOOL_BATCH_STARTED,
    *[EventType.POLICY_DECISION] * CALLS,
    EventType.RUN_PAUSED,
    EventType.RUN_RESUMED,
    *[EventType.TOOL_COMPLETED] * CALLS,
    EventType.WARNING,
]


def trail_of(kinds: list[EventType]) -> list[TrailEntry]:
    return append_events(TrailHead(), tuple(Event(type=kind) for kind in kinds), 0)[1]


def effect(place: int, tool: str, args: dict[str, JsonValue]) -> Effect:
    return Effect(tool=tool, args=args, run_id="run", call_id="call", idempotency_key=f"key{place}", pid=1)


EFFECTS = [effect(place, tool, {name: value}) for place, (tool, name, value) in enumerate(EXPECTED)]


def test_find_faults_is_empty_for_the_expected_run() -> None:
    assert find_faults("completed", trail_of(KINDS), EFFECTS) == []


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_find_faults_reports_a_missing_event_type(kind: EventType) -> None:
    without = [other for other in KINDS if other is not kind]

    assert f"The timeline has no {kind}." in find_faults("completed", trail_of(without), EFFECTS)


def test_find_faults_reports_a_call_without_end() -> None:
    faults = find_faults("completed", trail_of([*KINDS[:-2], KINDS[-1]]), EFFECTS)

    assert f"The timeline has {CALLS - 1} tool_completed events for {CALLS} calls." in faults


def test_find_faults_reports_an_incomplete_run() -> None:
    assert find_faults("failed", trail_of(KINDS), EFFECTS) == ["The run ended failed, not completed."]


def test_find_faults_reports_an_altered_trail() -> None:
    trail = trail_of(KINDS)
    trail[3] = trail[3].model_copy(update={"data": {"action": "allow"}})

    assert find_faults("completed", trail, EFFECTS) == ["The hash chain of the trail breaks at entry 4."]


def test_find_faults_reports_a_missing_effect() -> None:
    faults = find_faults("completed", trail_of(KINDS), EFFECTS[1:])

    assert faults == ["bank_account.calculate_interest with principal 5000.0 ran 0 times instead of once."]


def test_find_faults_reports_a_repeated_effect_and_key() -> None:
    faults = find_faults("completed", trail_of(KINDS), [*EFFECTS, EFFECTS[1]])

    assert faults == [
        "bank_account.transfer with amount 750.0 ran 2 times instead of once.",
        "The idempotency key key1 was used for 2 effects.",
    ]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("bank_account.transfer", {"amount": 5000.0}),
        ("send_email", {"to": "jane.doe@example.com"}),
        ("concert.book_ticket", {"artist": "Ed Sheeran"}),
    ],
)
def test_find_faults_reports_an_unexpected_effect(tool: str, args: dict[str, JsonValue]) -> None:
    (fault,) = find_faults("completed", trail_of(KINDS), [*EFFECTS, effect(99, tool, args)])

    assert fault.startswith(tool)
    assert fault.endswith("ran 1 times but should not have run.")
