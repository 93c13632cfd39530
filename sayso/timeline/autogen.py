"""Reader for AutoGen's messages and events as JSON, including those inside a `Response` or `TaskResult`."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sayso.core.canonical_json import JsonObject
from sayso.timeline.external_events import Fields, Kind, Part, read_json, read_moment, read_parts

Read = Callable[[Fields], Part | list[Part]]

_DEEPEST = 4
"""The limit on responses nested in responses."""


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event."""
    return tuple(_read(Fields(event), 0))


def _read(fields: Fields, depth: int) -> list[Part]:
    if depth < _DEEPEST and ("chat_message" in fields.raw or isinstance(fields.value("messages"), list)):
        inner = [*fields.rows("inner_messages"), *fields.rows("messages")]
        if "chat_message" in fields.raw:
            inner.append(fields.inner("chat_message"))
        parts = [part for message in inner for part in _read(message, depth + 1)]
        if fields.text("stop_reason"):
            parts.append(Part(Kind.END, "Done", fields.text("stop_reason")))
        return parts
    parts = read_parts(READERS, fields.text("type"), fields)
    at_ms, message_id, who = read_moment(fields.text("created_at")), fields.text("id"), fields.text("source")
    once = [f"{message_id}:{place}" if message_id else "" for place in range(len(parts))]
    return [replace(part, who=who, at_ms=at_ms, once=key) for part, key in zip(parts, once, strict=True)]


def _text(fields: Fields) -> Part:
    content = fields.value("content")
    if isinstance(content, str):
        return Part(Kind.TEXT, content)
    blocks = content if isinstance(content, list) else []
    text = "\n".join(block for block in blocks if isinstance(block, str))
    return Part(Kind.TEXT, text or "(no text)", data=None if text else content)


def _calls(fields: Fields) -> list[Part]:
    return [
        Part(
            Kind.CALL, name=row.text("name"), call_id=row.text("id", "call_id"), data=read_json(row.value("arguments"))
        )
        for row in fields.rows("content")
    ]


def _results(fields: Fields) -> list[Part]:
    return [
        Part(
            Kind.RESULT,
            result.text("content") if result.flag("is_error") else "",
            name=result.text("name"),
            call_id=result.text("call_id", "id"),
            ok=not result.flag("is_error"),
            data=read_json(result.value("content")),
        )
        for result in fields.rows("content")
    ]


def _note(kind: Kind, text: str) -> Read:
    def read_part(fields: Fields) -> Part:
        content = fields.value("content")
        if isinstance(content, str):
            return Part(kind, text, content)
        return Part(kind, text, data=content if content is not None else fields.value("result"))

    return read_part


READERS: Mapping[str, Read] = {
    "TextMessage": _text,
    "MultiModalMessage": _text,
    "StopMessage": _text,
    "StructuredMessage": _note(Kind.STEP, "Answered"),
    "ToolCallSummaryMessage": _text,
    "HandoffMessage": lambda fields: Part(
        Kind.STEP, f"Handed off to {fields.text('target') or 'an agent'}", fields.text("content")
    ),
    "ThoughtEvent": lambda fields: Part(Kind.REASONING, fields.text("content")),
    "ModelClientStreamingChunkEvent": lambda fields: Part(
        Kind.TEXT, fields.text("content"), key=fields.text("full_message_id"), whole=False
    ),
    "ToolCallRequestEvent": _calls,
    "ToolCallExecutionEvent": _results,
    "MemoryQueryEvent": _note(Kind.QUIET, "Queried its memory"),
    "CodeGenerationEvent": _note(Kind.STEP, "Wrote code"),
    "CodeExecutionEvent": _note(Kind.STEP, "Ran code"),
    "UserInputRequestedEvent": _note(Kind.WAIT, "Asked the user"),
    "SelectSpeakerEvent": _note(Kind.QUIET, "Selected the next speaker"),
    "SelectorEvent": _note(Kind.QUIET, "Selected the next speaker"),
}
