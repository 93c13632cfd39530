"""Events of AG-UI 1.0 as server-sent events: read from an agent, written to a client.

https://docs.ag-ui.com/spec/1.0: events that are not known are passed on as they are.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pydantic import JsonValue
from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject, parse_json
from sayso.errors import InvalidInput, SaysoError

MAX_EVENT_BYTES = 4_000_000
"""The largest event that is read; an endless one would fill the memory."""

RUN_STARTED, RUN_FINISHED, RUN_ERROR = "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"
TOOL_CALL_RESULT, MESSAGES_SNAPSHOT = "TOOL_CALL_RESULT", "MESSAGES_SNAPSHOT"


class BadStream(SaysoError):
    """The agent's answer is no stream of AG-UI's events."""


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[JsonObject]:
    """Yield the events of a stream. Raises `BadStream` for anything else."""
    held, block, size = bytearray(), list[bytes](), 0
    async for chunk in chunks:
        held += chunk
        _check_size(size + len(held))
        if b"\n" not in chunk:
            continue
        *lines, held = held.split(b"\n")
        for line in map(bytes, lines):
            if text := line.rstrip(b"\r"):
                block.append(text)
                size += len(text)
                continue
            if (event := _read_event(block)) is not None:
                yield event
            block, size = [], 0
    if (event := _read_event([*block, bytes(held)])) is not None:
        yield event


def _check_size(size: int) -> None:
    if size > MAX_EVENT_BYTES:
        raise BadStream(f"The agent sent an event of more than {MAX_EVENT_BYTES} bytes.")


def _read_event(lines: list[bytes]) -> JsonObject | None:
    """Return the event of its lines, or None for a comment."""
    data = b"\n".join(line[5:] for line in lines if line.startswith(b"data:"))
    if not data.strip():
        return None
    try:
        event = parse_json(data)
    except InvalidInput as error:
        raise BadStream("The agent sent an event that is not strict JSON.") from error
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise BadStream("The agent sent an event without a type.")
    return event


def write_event(event: JsonObject) -> bytes:
    """Return an event as it is sent."""
    return b"data: " + to_json(event) + b"\n\n"


@dataclass
class CallsSeen:
    """The tool calls of a run as the agent's events tell them: name and arguments by id. A client's messages do not."""

    _calls: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    _size: int = 0

    def note(self, event: JsonObject) -> None:
        """Note a part of a call, or all calls of a snapshot of messages. Raises `BadStream` if they are too large."""
        id_, kind = event.get("toolCallId"), event["type"]
        if kind == MESSAGES_SNAPSHOT:
            for known, name, args in list_calls(event.get("messages")):
                if known not in self._calls or (name, args) != (self._calls[known][0], "".join(self._calls[known][1])):
                    self._calls[known] = (name, [])
                    self._add(known, args)
        elif isinstance(id_, str) and kind == "TOOL_CALL_START":
            self._calls[id_] = (str(event.get("toolCallName")), [])
            self._add(id_, "")
        elif isinstance(id_, str) and kind == "TOOL_CALL_ARGS" and id_ in self._calls:
            self._add(id_, str(event.get("delta")))

    def _add(self, id_: str, part: str) -> None:
        name, parts = self._calls[id_]
        self._size += len(part) + (len(id_) + len(name) if not parts else 0)
        if self._size > MAX_EVENT_BYTES:
            raise BadStream(f"The agent's calls have more than {MAX_EVENT_BYTES} characters.")
        parts.append(part)

    def find(self, id_: str) -> tuple[str, JsonObject]:
        """Return name and arguments of a call. Raises `BadStream` if the agent has not sent it as strict JSON."""
        if id_ not in self._calls:
            raise BadStream(f"The agent asks about the call {id_[:80]!r}, which it has not sent.")
        name, parts = self._calls[id_]
        return name, parse_args(name, "".join(parts))


def list_calls(messages: object) -> list[tuple[str, str, str]]:
    """Return id, name and arguments as text of each tool call in messages."""
    calls = []
    for message in list_objects(messages):
        for call in list_objects(message.get("toolCalls")):
            function = call.get("function")
            if isinstance(function, dict):
                calls.append((str(call.get("id")), str(function.get("name")), str(function.get("arguments"))))
    return calls


def list_results(messages: object) -> dict[str, JsonValue]:
    """Return the result of each tool call in messages, by the call's id."""
    tools = [message for message in list_objects(messages) if message.get("role") == "tool"]
    return {str(message.get("toolCallId")): message.get("content") for message in tools}


def list_objects(value: object) -> list[JsonObject]:
    """Return the objects of a list, without its other members."""
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []


def parse_args(name: str, text: str) -> JsonObject:
    """Return the arguments of a call. Raises `BadStream` for anything but one strict JSON object."""
    try:
        args = parse_json(text.strip() or "{}")
    except InvalidInput as error:
        raise BadStream(f"The arguments of {name} are not strict JSON.") from error
    if not isinstance(args, dict):
        raise BadStream(f"The arguments of {name} are no JSON object.")
    return args
