"""Tests of merging external events into a timeline."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.records.events import TrailEntry
from sayso.timeline.external_events import Kind, StoredEvent, read_moment
from sayso.timeline.merging import SOURCE_FORMATS, Entry, SourceFormat, build_entries, merge
from tests.sayso.timeline.stories import STORIES, go

T0 = 1_795_262_400_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TOLD_NAMES = sorted({name for story in STORIES.values() for event in story for name in event})
RARE_NAMES = ["created_at", "stateDelta", "tool_calls", "longRunningToolIDs", "error", "messages", "events", "tag"]
NAMES = st.sampled_from(TOLD_NAMES) | st.sampled_from(RARE_NAMES)
KINDS = st.sampled_from(
    sorted({str(event.get("type", event.get("object"))) for story in STORIES.values() for event in story})
)


def kept(source_format: str, events: list[dict[str, Any]], source: str = "agent") -> list[StoredEvent]:
    return [
        StoredEvent(position=seq, source=source, source_format=source_format, seq=seq, at_ms=T0 + seq, event=event)
        for seq, event in enumerate(events, start=1)
    ]


def build_sample_entries(source_format: str) -> list[Entry]:
    return build_entries(kept(source_format, STORIES[source_format]))


def of(entries: list[Entry], kind: Kind) -> list[Entry]:
    return [one for one in entries if one.kind is kind]


@pytest.mark.parametrize("source_format", list(STORIES))
def test_build_entries_joins_fragments_and_pairs_calls(source_format: str) -> None:
    entries = build_sample_entries(source_format)
    texts = [one.text for one in entries if one.kind in (Kind.TEXT, Kind.REASONING)]
    assert len([text for text in texts if text in ("I will pay.", "I will pay Ann.", "Ann is owed 5.")]) >= 1, texts
    assert len(texts) == len(set(texts)), "a message in fragments and again as a whole is listed once"
    (call,) = of(entries, Kind.CALL)
    assert call.name == "pay"
    assert call.ended
    assert (call.ok is not False) is (source_format != "sayso")
    assert of(entries, Kind.RESULT) == []
    assert of(entries, Kind.UNKNOWN) == []


def test_build_entries_keeps_arguments_and_result_of_a_call() -> None:
    for source_format in ("autogen", "parsimony", "trpc_agent_go"):
        (call,) = of(build_sample_entries(source_format), Kind.CALL)
        assert call.data == {"amount": 5}
        assert call.output in ("paid 5", {"paid": 5})
    (failed,) = of(build_sample_entries("sayso"), Kind.CALL)
    assert (failed.ok, failed.text) == (False, "no funds")


def test_build_entries_shows_a_suspension() -> None:
    assert [one.text for one in of(build_sample_entries("afk"), Kind.WAIT)] == ["Paused: Waiting for deferred approval"]
    (asked,) = of(build_sample_entries("parsimony"), Kind.WAIT)
    assert (asked.text, asked.note) == ("Asked: Also Ben?", "yes / no")


def test_build_entries_breaks_cycles_of_invocations() -> None:
    depths = {one.who: one.depth for one in build_sample_entries("trpc_agent_go")}
    assert depths == {"payer": 0, "auditor": 1}
    circle = [
        go("x", "e1", invocationId="a", parentInvocationId="b"),
        go("x", "e2", invocationId="b", parentInvocationId="a"),
        go("x", "e3", invocationId="c", parentInvocationId="c"),
    ]
    assert [one.depth for one in build_entries(kept("trpc_agent_go", circle))] == [1, 1, 0]


def test_build_entries_shows_an_unknown_event_whole() -> None:
    for source_format in SourceFormat:
        event = {"type": "moon_landed", "object": "moon_landed", "crew": ["anna"]}
        (entry,) = build_entries(kept(source_format, [event]))
        assert entry.kind is Kind.UNKNOWN
        assert entry.text == "Moon landed"
        assert entry.data == event


def test_build_entries_splits_text_at_a_call() -> None:
    events = [
        {"type": "text_delta", "data": {"delta": "one"}},
        {"type": "warning", "message": "slow", "data": {}},
        {"type": "text_delta", "data": {"delta": "two"}},
    ]
    assert [one.text for one in build_entries(kept("afk", events))] == ["one", "slow", "two"]


def test_build_entries_pairs_results_without_ids_in_order() -> None:
    events: list[dict[str, Any]] = [
        {"type": "tool_call", "name": "a"},
        {"type": "tool_call", "name": "b"},
        {"type": "tool_output", "output": "first"},
        {"type": "tool_output", "output": None},
        {"type": "tool_output", "output": ["nobody asked"]},
    ]
    entries = build_entries(kept("tool_responses", events))
    assert [(one.kind, one.name, one.ok) for one in entries] == [
        (Kind.CALL, "a", True),
        (Kind.CALL, "b", True),
        (Kind.RESULT, "", True),
    ]
    assert entries[0].output == "first"
    assert entries[2].output == ["nobody asked"]


def test_build_entries_treats_a_reused_call_id_as_a_new_call() -> None:
    once = [
        {"type": "tool_call", "data": {"name": "a", "call_id": "1"}},
        {"type": "tool_result", "data": {"call_id": "1", "success": True}},
    ]
    entries = build_entries(kept("sayso", [*once, *once]))
    assert [(one.first_seq, one.last_seq, one.ok) for one in entries] == [(1, 2, True), (3, 4, True)]


def test_build_entries_keeps_the_order_of_a_source() -> None:
    said = [T0 - 50, T0 - 90, T0 + 999_999]
    events = [
        one.model_copy(update={"said_at_ms": at_ms})
        for one, at_ms in zip(kept("sayso", [{"type": "note"}] * 3), said, strict=True)
    ]
    assert [one.at_ms for one in build_entries(events)] == [T0 - 50, T0 - 50, T0 + 3]


def test_build_entries_shows_a_repeated_afk_step_once() -> None:
    step = {"run_id": "r", "step": 1}
    entered = [
        {**step, "type": "step_started", "data": {}},
        {**step, "type": "llm_completed", "data": {"text": "I pay.", "tool_call_count": 1}},
        {**step, "type": "tool_batch_started", "data": {"tool_names": ["pay"], "tool_call_ids": ["c0"]}},
    ]
    other = {**entered[1], "data": {"text": "I pay twice.", "tool_call_count": 1}}
    entries = build_entries([*kept("afk", entered), *kept("afk", [*entered, other], source="later")])
    assert [one.text for one in entries if one.kind is Kind.TEXT] == ["I pay.", "I pay twice."]
    assert [one.call_id for one in entries if one.kind is Kind.CALL] == ["c0"]


def test_merge_sorts_trail_and_entries_by_time() -> None:
    ours = [TrailEntry(seq=n, at_ms=T0 + at, type="warning", data={}, hash="h") for n, at in ((1, 1), (2, 3))]
    both = merge(ours, build_entries(kept("sayso", [{"type": "note"}] * 3)))
    assert [one.seq if isinstance(one, TrailEntry) else f"told {one.first_seq}" for one in both] == [
        1,
        "told 1",
        "told 2",
        2,
        "told 3",
    ]


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("2026-11-21T12:00:00.123456789Z", T0 + 123),
        ("2026-11-21T13:00:00+01:00", T0),
        ("2026-11-21T12:00:00", T0),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
    ],
)
def test_read_moment_reads_go_and_python_times(text: str, at_ms: int | None) -> None:
    assert read_moment(text) == at_ms


@given(
    st.sampled_from(list(SourceFormat)),
    st.lists(
        st.dictionaries(NAMES | st.text(max_size=4), JSON | KINDS, max_size=5).map(
            lambda event: event if "type" in event else {**event, "type": "TextMessage"}
        ),
        max_size=4,
    ),
    KINDS,
)
def test_build_entries_reads_any_json(source_format: SourceFormat, events: list[dict[str, Any]], kind: str) -> None:
    for event in events:
        for one in (event, {**event, "type": kind}, {**event, "object": kind}):
            assert all(isinstance(piece.text, str) for piece in SOURCE_FORMATS[source_format].read(one))
    alone = [build_entries(kept(source_format, [event])) for event in events]
    assert all(alone)
    assert build_entries(kept(source_format, events)) or not events


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        (
            {"usage": {"prompt_tokens": 1200, "completion_tokens": 0}, "latency_ms": 812},
            "1200 input tokens, 0 output tokens, 812 ms",
        ),
        ({"usage": None, "latency_ms": 7}, "7 ms"),
        ({"usage": {"prompt_tokens": "<b>", "completion_tokens": -1}, "latency_ms": True}, None),
        ({"usage": [7], "latency_ms": 1.5}, None),
    ],
)
def test_parsimony_tells_tokens_and_time_of_a_model_call(fields: dict[str, Any], note: str | None) -> None:
    event = {"type": "llm_call_completed", "response_text": "Paid.", "tool_calls": [], **fields}
    entries = build_entries(kept("parsimony", [event]))
    assert [entry.note for entry in of(entries, Kind.QUIET)] == ([note] if note is not None else [])
    assert [entry.text for entry in of(entries, Kind.TEXT)] == ["Paid."]


def test_chat_that_opens_a_window_has_a_link() -> None:
    output = {
        "response_type": "open_window",
        "agent_name": "a",
        "friendly_name": "f",
        "response": {"url": "https://a.example"},
    }
    call = {"type": "tool_call", "name": "show", "current_agent": "a"}
    (entry,) = build_entries(kept("tool_responses", [call, {"type": "tool_output", "output": output}]))
    assert (entry.kind, entry.name, entry.link) == (Kind.CALL, "show", "https://a.example")
