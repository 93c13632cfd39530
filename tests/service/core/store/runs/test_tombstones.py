"""A tombstone keeps who, when, which call, which rule and which verdict, and no field that nobody listed."""

from typing import Any

import pytest

from sayso.core.records.events import EventType, TrailEntry
from service.core.store.runs.erasures import make_tombstone

SECRET = "Erika"


def entry(type_: str, data: dict[str, Any]) -> TrailEntry:
    return TrailEntry(seq=3, at_ms=10, type=type_, data=data, hash="0" * 32)


@pytest.mark.parametrize(
    ("type_", "data", "left"),
    [
        (
            EventType.POLICY_DECISION,
            {"tool_name": "pay", "action": "allow", "policy_id": "p", "rule_version": "v", "args": {"to": SECRET}},
            {"tool_name": "pay", "action": "allow", "policy_id": "p", "rule_version": "v"},
        ),
        (
            EventType.RUN_PAUSED,
            {"payload": {"suspension_id": "s", "items": [{"item_id": "i1", "reason": SECRET}]}, "reason": SECRET},
            {"payload": {"suspension_id": "s", "items": [{"item_id": "i1"}]}},
        ),
        (
            EventType.DECISION_RECORDED,
            {"by": {"id": "anna"}, "verdict": "denied", "message": SECRET, "shown": {"look_ms": 5, "paths": [SECRET]}},
            {"by": {"id": "anna"}, "verdict": "denied", "shown": {"look_ms": 5}},
        ),
        ("an_event_of_a_later_version", {"new": SECRET, "at_ms": 4}, {"at_ms": 4}),
    ],
)
def test_tombstone_keeps_the_decision_alone(type_: str, data: dict[str, Any], left: dict[str, Any]) -> None:
    made = make_tombstone(entry(type_, data), 9)
    assert (made.data, made.erased_by, made.hash, made.type) == (left, 9, "0" * 32, type_)


def test_event_without_contents_and_earlier_tombstone_stay_as_they_are() -> None:
    whole = entry(EventType.PERMIT_REDEEMED, {"item_id": "i1", "attempt": 1})
    assert make_tombstone(whole, 9) is whole
    tombstone = entry(EventType.WARNING, {}).model_copy(update={"erased_by": 5})
    assert make_tombstone(tombstone, 9) is tombstone
    erasure = entry(EventType.CONTENTS_ERASED, {"by": {"id": "root"}, "reason": "asked"})
    assert make_tombstone(erasure, 9) is erasure
