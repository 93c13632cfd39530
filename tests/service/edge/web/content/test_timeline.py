from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.records.events import EventType, TrailEntry
from service.edge.web.content.timeline import DESCRIBERS, Line, describe_trail
from tests.sayso.core.text.test_summaries import JSON


def entry(type_: str, seq: int = 1, **data: Any) -> TrailEntry:
    return TrailEntry(seq=seq, at_ms=1_000_000 + seq, type=type_, data=data, hash="h")


def describe(type_: str, **data: Any) -> Line:
    (line,) = describe_trail([entry(type_, **data)])
    return line


PAUSED = entry(
    "run_paused",
    tool_name="refund",
    payload={
        "suspension_id": "sus_1",
        "items": [{"item_id": "i1", "tool_name": "refund"}, {"item_id": "i2", "tool_name": "mail"}],
    },
)


@pytest.mark.parametrize(
    ("type_", "data", "text"),
    [
        ("run_started", {"owner": "demo", "agent": "support"}, "demo started support"),
        ("llm_completed", {"tool_call_count": 2, "text": "hm"}, "The model requested 2 calls"),
        ("llm_completed", {"tool_call_count": 1}, "The model requested 1 call"),
        ("llm_completed", {"tool_call_count": 0}, "The model answered"),
        ("tool_batch_started", {"tool_call_count": 3}, "The rules checked 3 calls"),
        ("policy_decision", {"tool_name": "a", "action": "allow"}, "a is allowed"),
        ("policy_decision", {"tool_name": "a", "action": "deny"}, "a is denied by the rules"),
        ("policy_decision", {"tool_name": "a", "action": "defer"}, "a needs approval"),
        ("policy_decision", {"tool_name": "a", "action": "request_user_input"}, "a needs a value"),
        ("policy_decision", {"tool_name": "a", "action": "wonder"}, "a was evaluated: wonder"),
        ("decided", {}, "All decided"),
        ("run_resuming", {"attempt": 1}, "A worker has the run"),
        ("run_resuming", {"attempt": 2}, "A worker has the run (attempt 2)"),
        ("run_resumed", {"approved": True}, "The run resumed"),
        ("run_resumed", {"approved": False}, "The run resumed after a denial"),
        ("tool_completed", {"tool_name": "a", "success": True, "latency_ms": 12.4}, "a ran in 12 ms"),
        ("tool_completed", {"tool_name": "a", "success": False, "error": "no"}, "a failed"),
        ("tool_batch_completed", {"tool_call_count": 2, "failure_count": 1}, "2 calls finished, 1 failed"),
        ("warning", {"message": "Output was cut"}, "Output was cut"),
        ("deadline_extended", {"by": {"id": "ben"}, "item_id": "i1"}, "ben extended the deadline of i1"),
        ("item_seen", {"by": {"id": "ben"}, "item_id": "i1"}, "ben opened i1"),
        ("card_sent", {"person": "ben", "item_id": "i1", "channel": "ops"}, "ben was notified of i1 over ops"),
        (
            "card_failed",
            {"person": "group:fin", "item_id": "i1", "channel": "ops"},
            "The group fin was not notified of i1 over ops",
        ),
        ("result_reported", {"item_id": "i1"}, "The worker that started i1 reported its result"),
        ("run_released", {"reason": "stopping"}, "The worker released the run"),
        ("run_revived", {"by": {"id": "admin"}}, "admin retried the run"),
        ("run_completed", {"result": {}}, "The run completed"),
        ("run_degraded", {"error": "e"}, "The run ended early"),
        ("run_failed", {"error": "e"}, "The run failed"),
        ("run_cancelled", {"by": {"id": "anna"}}, "anna cancelled the run"),
        (
            "run_cancelled",
            {"by": {"id": "anna"}, "calls_in_flight": ["c1"]},
            "anna cancelled the run while 1 call may have been running",
        ),
        (
            "run_cancelled",
            {"by": {"id": "anna"}, "calls_in_flight": ["c1", "c2"]},
            "anna cancelled the run while 2 calls may have been running",
        ),
    ],
)
def test_describe_trail_returns_a_sentence_per_event(type_: str, data: dict[str, Any], text: str) -> None:
    assert describe(type_, **data).text == text


def test_describe_trail_names_items_by_their_tools() -> None:
    approved = entry("decision_recorded", 2, suspension_id="sus_1", item_id="i2", action="approve", by={"id": "ben"})
    late = entry("timed_out", 3, suspension_id="sus_1", item_id="i1", verdict="denied", fallback="deny")
    redeemed = entry("permit_redeemed", 4, item_id="i2")
    texts = [line.text for line in describe_trail([PAUSED, approved, late, redeemed])]
    assert texts == [
        "Waiting for a decision on refund and mail",
        "ben approved mail; more decisions are needed",
        "refund was denied: nobody answered in time",
        "mail was started",
    ]


def test_describe_trail_keeps_notes_and_output() -> None:
    assert (
        describe("decision_recorded", action="deny", by={"id": "ben"}, verdict="denied", message="Too old").note
        == "Too old"
    )
    assert (
        describe("policy_decision", tool_name="a", action="defer", reason="r", error="e").note
        == "r (evaluation failed: e)"
    )
    assert '"id": 7' in describe("tool_completed", tool_name="a", success=True, output={"id": 7}).data


def test_describe_trail_shows_the_data_of_unknown_events() -> None:
    line = describe("moon_landed", crew=["anna"])
    assert line.text == "Moon landed"
    assert '"anna"' in line.data


@pytest.mark.parametrize("kind", list(EventType))
def test_describers_cover_every_event_type_even_without_data(kind: EventType) -> None:
    assert kind in DESCRIBERS
    assert describe(kind).text


@given(st.sampled_from([*EventType, "unknown_kind"]), st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_describe_trail_accepts_any_event_data(kind: str, data: dict[str, Any]) -> None:
    keys = (
        "items",
        "payload",
        "by",
        "tool_name",
        "message",
        "text",
        "attempt",
        "tool_names",
        "reviewers",
        "latency_ms",
    )
    assert describe(kind, **dict(zip(keys, data.values(), strict=False))).text
