"""The demo's own check notices what went wrong, and nothing else."""

import pytest
from pydantic import JsonValue

from demo.checks import CALLS, EXPECTED, find_faults
from demo.effects import Effect
from sayso.records.events import Event, EventType, TrailEntry, TrailHead
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


def test_the_run_as_it_has_to_be_has_no_faults() -> None:
    assert find_faults("completed", trail_of(KINDS), EFFECTS) == []


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_a_missing_kind_of_event_is_noticed(kind: EventType) -> None:
    without = [other for other in KINDS if other is not kind]

    assert f"The timeline has no {kind}." in find_faults("completed", trail_of(without), EFFECTS)


def test_a_call_without_its_end_is_noticed() -> None:
    faults = find_faults("completed", trail_of([*KINDS[:-2], KINDS[-1]]), EFFECTS)

    assert f"There are {CALLS - 1} events tool_completed for {CALLS} calls." in faults


def test_a_run_that_did_not_complete_is_noticed() -> None:
    assert find_faults("failed", trail_of(KINDS), EFFECTS) == ["The run ended failed, not completed."]


def test_an_altered_trail_is_noticed() -> None:
    trail = trail_of(KINDS)
    trail[3] = trail[3].model_copy(update={"data": {"action": "allow"}})

    assert find_faults("completed", trail, EFFECTS) == ["The trail does not follow from itself at entry 4."]


def test_a_missing_effect_is_noticed() -> None:
    faults = find_faults("completed", trail_of(KINDS), EFFECTS[1:])

    assert faults == ["bank_account.calculate_interest with principal 5000.0 was done 0 times, not once."]


def test_an_effect_done_twice_is_noticed_and_so_is_its_key() -> None:
    faults = find_faults("completed", trail_of(KINDS), [*EFFECTS, EFFECTS[1]])

    assert faults == [
        "bank_account.transfer with amount 750.0 was done 2 times, not once.",
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
def test_an_effect_that_was_never_to_be_is_noticed(tool: str, args: dict[str, JsonValue]) -> None:
    (fault,) = find_faults("completed", trail_of(KINDS), [*EFFECTS, effect(99, tool, args)])

    assert fault.startswith(tool)
    assert fault.endswith("was done 1 times, and never should have been.")
