"""The tree of calls, from events alone."""

from typing import Any

from sayso.core.records.events import EventType, TrailEntry
from service.edge.web.content.runs import TreeCall, list_turns


def trail(*events: tuple[str, dict[str, Any]]) -> list[TrailEntry]:
    return [
        TrailEntry(seq=seq, at_ms=seq, type=kind, data=data, hash="")
        for seq, (kind, data) in enumerate(events, start=1)
    ]


def judged(index: int, tool: str, action: str = "allow") -> tuple[str, dict[str, Any]]:
    return EventType.POLICY_DECISION, {"index": index, "tool_name": tool, "action": action}


def ran(index: int, tool: str, success: bool) -> tuple[str, dict[str, Any]]:
    return EventType.TOOL_COMPLETED, {"index": index, "tool_name": tool, "success": success}


def test_turns_have_their_calls_and_results() -> None:
    turns = list_turns(
        trail(
            (EventType.LLM_COMPLETED, {"text": "First I  look.", "tool_call_count": 3}),
            judged(0, "find"),
            judged(1, "wipe", "deny"),
            judged(2, "read"),
            ran(0, "find", True),
            ran(1, "wipe", False),
            ran(2, "read", False),
            (EventType.LLM_COMPLETED, {"text": "x" * 300, "tool_call_count": 0}),
        ),
        [],
    )
    assert [turn.text for turn in turns] == ["First I look.", f"{'x' * 199}…"]
    assert turns[0].calls == [TreeCall("find", "completed"), TreeCall("wipe", "denied"), TreeCall("read", "failed")]
    assert turns[1].calls == []


def test_suspension_without_a_readable_record_is_named_by_the_trail() -> None:
    payload = {"suspension_id": "sus_1", "items": [{"tool_name": "pay", "item_id": "i1"}]}
    (turn,) = list_turns(trail((EventType.RUN_PAUSED, {"payload": payload})), [])
    assert turn.calls == [TreeCall("pay", "suspended")]


def test_events_of_other_versions_are_no_fault() -> None:
    odd = [(kind, {"index": "x", "payload": [], "text": 7, "items": {}}) for kind in EventType]
    assert [turn.text for turn in list_turns(trail(*odd), [])] == ["7"]
