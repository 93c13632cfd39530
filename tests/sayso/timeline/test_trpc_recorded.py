"""Tests of the timeline with recorded events of trpc-agent-go, and with others of the same shapes."""

from typing import Any

import pytest

from sayso.timeline.external_events import Kind
from sayso.timeline.merging import Entry, build_entries
from sayso.timeline.trpc_states import build_tree, decode_all, find_suspensions, write_graph_resume
from tests.sayso.timeline.recorded import SHOWN, describe, read_recorded
from tests.sayso.timeline.stories import encode, go
from tests.sayso.timeline.test_merging import kept

QUIET = {
    "payments": {
        "0 quiet payments: Waits until its events are saved",
        "0 quiet review: review is at 0 % / checking call_0_0",
        "0 quiet review: review is at 100 % / checked",
        "1 quiet answer: Node answer started",
        "1 quiet answer: Called scripted",
        "1 quiet answer: The model answered / Took …",
    },
    "handoff": {
        "0 quiet helper: Preprocessing: instruction",
        "1 quiet clerk: The model answered / 11 tokens in, 7 out; first token of the run after …",
    },
}


def entries_of(*events: dict[str, Any]) -> list[Entry]:
    return build_entries(kept("trpc_agent_go", list(events)))


@pytest.mark.parametrize("run", list(SHOWN))
def test_recorded_run_is_shown(run: str) -> None:
    entries = entries_of(*read_recorded(run))
    assert [describe(entry) for entry in entries if entry.kind is not Kind.QUIET] == SHOWN[run]
    assert QUIET.get(run, set()) <= {describe(entry) for entry in entries}


def test_recorded_call_has_its_arguments_and_result() -> None:
    (call,) = (entry for entry in entries_of(*read_recorded("payments")) if entry.kind is Kind.CALL)
    assert (call.data, call.output, call.ended) == ({"to": "ann", "amount": 2}, "sent 2 to ann", True)


def test_recorded_events_without_a_request_are_in_the_tree_of_their_invocation() -> None:
    events = decode_all([*read_recorded("payments")])
    assert any(not event.request_id for event in events)
    tree = build_tree(events)
    assert list(tree) == ["r-t1", "r-t1b"]
    assert [[child.author for child in root.children] for (root,) in tree.values()] == [
        ["plan", "review"],
        ["review", "tools", "answer"],
    ]


def test_recorded_interrupt_is_resumed() -> None:
    events = decode_all([*read_recorded("payments")])
    (waiting,) = find_suspensions(events)
    assert (waiting.key, waiting.prompt) == ("call_0_0", {"tool": "send_money", "args": {"to": "ann", "amount": 5}})
    assert write_graph_resume([waiting], {"call_0_0": True})["checkpoint_ns"] == "payments"


def test_recorded_long_running_tool_waits() -> None:
    (waiting,) = find_suspensions(decode_all([*read_recorded("tools")]))
    assert (waiting.mechanism, waiting.name) == ("long_running_tool", "book")


def test_message_of_a_node_and_of_its_model_is_listed_once() -> None:
    meta = {"phase": "complete", "responseId": "resp-1", "output": "Paid.", "duration": 2_500_000_000}
    node = go("graph.node.execution", "e3", stateDelta={"_model_metadata": encode(meta)})
    said = go("chat.completion", "e2", {"role": "assistant", "content": "Paid."})
    first = go("chat.completion.chunk", "e1", delta={"content": "Pa"}, is_partial=True)
    for events in ([first, said, node], [first, node, said], [node, said], [node]):
        entries = entries_of(*events)
        assert [entry.text for entry in entries if entry.kind is Kind.TEXT] == ["Paid."]
        assert [entry.note for entry in entries if entry.text == "The model answered"] == ["Took 2.5 s"]


def test_failed_call_is_listed_once() -> None:
    state = {"_tool_metadata": encode({"phase": "start", "toolName": "pay", "toolId": "c1", "input": '{"amount":5}'})}
    started = go("graph.node.execution", "e1", stateDelta=state)
    error = {"type": "flow_error", "message": "no funds"}
    ended = go("tool.response", "e2", {"role": "tool", "tool_id": "c1", "tool_name": "pay"}, error=error, done=True)
    choices = [{"message": {"role": "assistant", "content": "An error occurred."}, "finish_reason": "error"}]
    failed = go("graph.node.error", "e3", error=error, choices=choices)
    shown = [(entry.kind, entry.text, entry.note, entry.ok) for entry in entries_of(started, ended, failed)]
    assert shown == [(Kind.CALL, "no funds", "", False), (Kind.PROBLEM, "Failed", "no funds", None)]


@pytest.mark.parametrize(("progress", "shown"), [(None, 0), (33.333, 33), (100, 100), ("half", 0)])
def test_progress_is_shown_in_percent(progress: Any, shown: int) -> None:
    meta = {"category": "progress", "nodeId": "review", "progress": progress, "message": "checking"}
    (entry,) = entries_of(go("graph.node.custom", "e1", stateDelta={"_node_custom_metadata": encode(meta)}))
    assert (entry.text, entry.note) == (f"review is at {shown} %", "checking")


def test_agui_shows_what_nodes_say() -> None:
    said: list[tuple[str, dict[str, Any]]] = [
        ("progress", {"nodeId": "review", "progress": 50, "message": "checking"}),
        ("text", {"nodeId": "review", "content": "Asking."}),
        ("review.asked", {"nodeId": "review", "payload": {"call": "c1"}}),
    ]
    reasoning = {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m1", "delta": "All calls ended."}
    events = [{"type": "CUSTOM", "timestamp": 1_795_262_400_000, "name": name, "value": value} for name, value in said]
    entries = entries_of(*events, reasoning)
    assert [(entry.kind, entry.text, entry.note, entry.data) for entry in entries] == [
        (Kind.QUIET, "review is at 50 %", "checking", None),
        (Kind.TEXT, "Asking.", "", None),
        (Kind.STEP, "review: review.asked", "", {"call": "c1"}),
        (Kind.REASONING, "All calls ended.", "", None),
    ]
    assert entries[0].at_ms == 1_795_262_400_000


def test_event_without_a_type_is_shown_whole_unless_it_only_waits() -> None:
    (entry,) = entries_of(go("", "e1"))
    assert entry.kind is Kind.UNKNOWN
    (entry,) = entries_of(go("", "e1", requiresCompletion=True))
    assert (entry.kind, entry.text) == (Kind.QUIET, "Waits until its events are saved")
