from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.records.events import EventType, TrailEntry
from service.web.content.timeline import TELLERS, Line, describe_trail
from tests.service.web.content.test_summaries import JSON


def entry(type_: str, seq: int = 1, **data: Any) -> TrailEntry:
    return TrailEntry(seq=seq, at_ms=1_000_000 + seq, type=type_, data=data, hash="h")


def tell(type_: str, **data: Any) -> Line:
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
        ("llm_completed", {"tool_call_count": 2, "text": "hm"}, "The model asked for 2 calls"),
        ("llm_completed", {"tool_call_count": 1}, "The model asked for 1 call"),
        ("llm_completed", {"tool_call_count": 0}, "The model answered"),
        ("tool_batch_started", {"tool_call_count": 3}, "Judging 3 calls"),
        ("policy_decision", {"tool_name": "a", "action": "allow"}, "a is allowed"),
        ("policy_decision", {"tool_name": "a", "action": "deny"}, "a is denied by the rules"),
        ("policy_decision", {"tool_name": "a", "action": "defer"}, "a needs approval"),
        ("policy_decision", {"tool_name": "a", "action": "request_user_input"}, "a needs a value"),
        ("policy_decision", {"tool_name": "a", "action": "wonder"}, "a was judged: wonder"),
        ("decided", {}, "Everything asked is decided; the run can go on"),
        ("run_resuming", {"attempt": 1}, "A worker took the run up"),
        ("run_resuming", {"attempt": 2}, "A worker took the run up (attempt 2)"),
        ("run_resumed", {"approved": True}, "The run went on"),
        ("run_resumed", {"approved": False}, "The run went on, with a denial"),
        ("tool_completed", {"tool_name": "a", "success": True, "latency_ms": 12.4}, "a ran in 12 ms"),
        ("tool_completed", {"tool_name": "a", "success": False, "error": "no"}, "a did not succeed"),
        ("tool_batch_completed", {"tool_call_count": 2, "failure_count": 1}, "2 calls done, 1 without success"),
        ("warning", {"message": "Output was cut"}, "Output was cut"),
        ("deadline_extended", {"by": {"id": "ben"}, "item_id": "i1"}, "ben gave more time for i1"),
        ("item_seen", {"by": {"id": "ben"}, "item_id": "i1"}, "ben saw i1"),
        ("result_reported", {"item_id": "i1"}, "The worker that had begun i1 reported its result after all"),
        ("run_released", {"reason": "stopping"}, "The worker put the run back for another one"),
        ("run_revived", {"by": {"id": "admin"}}, "admin had the run taken up once more"),
        ("run_completed", {"result": {}}, "The run is complete"),
        ("run_degraded", {"error": "e"}, "The run ended early"),
        ("run_failed", {"error": "e"}, "The run failed"),
        ("run_cancelled", {"by": {"id": "anna"}}, "anna cancelled the run"),
        (
            "run_cancelled",
            {"by": {"id": "anna"}, "calls_in_flight": ["c1"]},
            "anna cancelled the run while a call was under way, which may have run",
        ),
        (
            "run_cancelled",
            {"by": {"id": "anna"}, "calls_in_flight": ["c1", "c2"]},
            "anna cancelled the run while 2 calls were under way, which may have run",
        ),
    ],
)
def test_each_kind_is_told_in_plain_words(type_: str, data: dict[str, Any], text: str) -> None:
    assert tell(type_, **data).text == text


def test_items_are_called_by_their_tools() -> None:
    said = entry("decision_recorded", 2, suspension_id="sus_1", item_id="i2", action="approve", by={"id": "ben"})
    late = entry("timed_out", 3, suspension_id="sus_1", item_id="i1", verdict="denied", fallback="deny")
    spent = entry("permit_redeemed", 4, item_id="i2")
    texts = [line.text for line in describe_trail([PAUSED, said, late, spent])]
    assert texts == [
        "Waiting for people: refund and mail",
        "ben approved mail; it takes more",
        "Nobody answered in time: refund denied by its fallback",
        "The leave to run mail was spent",
    ]


def test_what_was_said_with_it_is_kept() -> None:
    assert (
        tell("decision_recorded", action="deny", by={"id": "ben"}, verdict="denied", message="Too old").note
        == "Too old"
    )
    assert tell("policy_decision", tool_name="a", action="defer", reason="r", error="e").note == "r (judging failed: e)"
    assert '"id": 7' in tell("tool_completed", tool_name="a", success=True, output={"id": 7}).data


def test_an_unknown_kind_is_shown_with_all_its_data() -> None:
    line = tell("moon_landed", crew=["anna"])
    assert line.text == "Moon landed"
    assert '"anna"' in line.data


@pytest.mark.parametrize("kind", list(EventType))
def test_every_kind_we_write_has_words_of_its_own_even_without_data(kind: EventType) -> None:
    assert kind in TELLERS
    assert tell(kind).text


@given(st.sampled_from([*EventType, "unknown_kind"]), st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_whatever_the_data_is_the_event_is_told(kind: str, data: dict[str, Any]) -> None:
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
    assert tell(kind, **dict(zip(keys, data.values(), strict=False))).text
