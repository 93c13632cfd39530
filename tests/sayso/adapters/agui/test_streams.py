"""Events of AG-UI as they are read from an agent."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from sayso.adapters.agui import streams
from sayso.adapters.agui.streams import BadStream, CallsSeen, read_events


async def read(*chunks: bytes) -> list[Any]:
    """Return the events of a stream in these chunks."""

    async def send() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [event async for event in read_events(send())]


@pytest.mark.parametrize(
    "raw",
    [
        b'data: {"type":"A","n":1}\n\ndata: {"type":"B"}\n\n',
        b'data: {"type":"A","n":1}\r\n\r\ndata: {"type":"B"}\r\n\r\n',
        b': hello\n\nevent: x\nid: 7\ndata: {"type":"A",\ndata: "n":1}\n\ndata:{"type":"B"}',
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_events_are_read_however_they_arrive(raw: bytes, size: int) -> None:
    chunks = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert await read(*chunks) == [{"type": "A", "n": 1}, {"type": "B"}]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"data: <html>\n\n", "not strict JSON"),
        (b'data: {"type":"A","type":"B"}\n\n', "not strict JSON"),
        (b'data: {"type":"A","n":NaN}\n\n', "not strict JSON"),
        (b"data: [" * 5000, "not strict JSON"),
        (b"data: \xff\n\n", "not strict JSON"),
        (b"data: 7\n\n", "without a type"),
        (b'data: {"n":1}\n\n', "without a type"),
    ],
)
async def test_other_streams_are_refused(raw: bytes, message: str) -> None:
    with pytest.raises(BadStream, match=message):
        await read(raw)


@pytest.mark.parametrize("part", [b"x" * 100, b"data: 1\n", b": still here\n"])
async def test_endless_event_is_refused(part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_EVENT_BYTES", 1000)

    async def send() -> AsyncIterator[bytes]:
        while True:
            yield part

    events = read_events(send())
    with pytest.raises(BadStream, match="more than 1000 bytes"):
        await anext(events)


def note(*events: dict[str, Any]) -> CallsSeen:
    """Return the calls of these events."""
    seen = CallsSeen()
    for event in events:
        seen.note(event)
    return seen


START = {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay"}


def test_calls_are_read_from_parts() -> None:
    parts = [{"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": part} for part in ('{"to"', ': "ann"}')]
    assert note(START, *parts).find("c") == ("pay", {"to": "ann"})
    assert note(START).find("c") == ("pay", {})


def test_snapshot_tells_the_latest_state_of_a_call() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": '{"to": "bob"}'}}
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": [{"role": "user"}, {"toolCalls": [call]}, 7]}
    part = {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"to": "ann"}'}
    assert note(START, part, snapshot).find("c") == ("pay", {"to": "bob"})


def test_call_of_invalid_arguments_is_refused_only_if_it_is_asked_about() -> None:
    seen = note(START, {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"to": "ann", "to": "eve"}'})
    with pytest.raises(BadStream, match="arguments of pay are not strict JSON"):
        seen.find("c")
    with pytest.raises(BadStream, match="which it has not sent"):
        seen.find("other")


def test_endless_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_EVENT_BYTES", 1000)
    parts = [{"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "xx"}] * 1000
    with pytest.raises(BadStream, match="more than 1000 characters"):
        note(START, *parts)
