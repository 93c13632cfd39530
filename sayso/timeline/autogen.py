"""Read AutoGen's messages and events as they dump to JSON, a `Response` and a `TaskResult` with all inside included."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Fields, Kind, Piece, describe_unknown, read_json, read_moment

Tell = Callable[[Fields], tuple[Piece, ...]]

_DEEPEST = 4
"""A message inside of a response inside of a response … no further."""


def read(event: JsonObject) -> tuple[Piece, ...]:
    """Return what the event shows."""
    return _read(Fields(event), 0)


def _read(fields: Fields, depth: int) -> tuple[Piece, ...]:
    if depth < _DEEPEST and ("chat_message" in fields.raw or isinstance(fields.value("messages"), list)):
        return _read_many(fields, depth)
    tell = TELLERS.get(fields.word("type"))
    pieces = tell(fields) if tell is not None else (describe_unknown(fields, fields.word("type")),)
    at_ms, message_id, who = read_moment(fields.word("created_at")), fields.word("id"), fields.word("source")
    return tuple(
        replace(piece, who=who, at_ms=at_ms, once=f"{message_id}:{place}" if message_id else "")
        for place, piece in enumerate(pieces)
    )


def _read_many(fields: Fields, depth: int) -> tuple[Piece, ...]:
    inner = [*fields.rows("inner_messages"), *fields.rows("messages")]
    if "chat_message" in fields.raw:
        inner.append(fields.inner("chat_message"))
    pieces = [piece for one in inner for piece in _read(one, depth + 1)]
    if fields.word("stop_reason"):
        pieces.append(Piece(Kind.END, "Done", fields.word("stop_reason")))
    return tuple(pieces)


def _text(fields: Fields) -> tuple[Piece, ...]:
    content = fields.value("content")
    if isinstance(content, str):
        return (Piece(Kind.TEXT, content),)
    parts = content if isinstance(content, list) else []
    text = "\n".join(one for one in parts if isinstance(one, str))
    return (Piece(Kind.TEXT, text or "(no text)", data=None if text else content),)


def _chunk(fields: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.TEXT, fields.word("content"), key=fields.word("full_message_id"), whole=False),)


def _handoff(fields: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.STEP, f"Handed over to {fields.word('target') or 'somebody'}", fields.word("content")),)


def _calls(fields: Fields) -> tuple[Piece, ...]:
    return tuple(
        Piece(Kind.CALL, name=one.word("name"), call_id=one.word("id", "call_id"), data=read_json(_given(one)))
        for one in fields.rows("content")
    )


def _given(call: Fields) -> JsonValue:
    return call.value("arguments")


def _results(fields: Fields) -> tuple[Piece, ...]:
    return tuple(
        Piece(
            Kind.RESULT,
            one.word("content") if one.true("is_error") else "",
            name=one.word("name"),
            call_id=one.word("call_id", "id"),
            ok=not one.true("is_error"),
            data=read_json(one.value("content")),
        )
        for one in fields.rows("content")
    )


def _told(kind: Kind, text: str) -> Tell:
    def tell(fields: Fields) -> tuple[Piece, ...]:
        content = fields.value("content")
        if isinstance(content, str):
            return (Piece(kind, text, content),)
        return (Piece(kind, text, data=content if content is not None else fields.value("result")),)

    return tell


TELLERS: Mapping[str, Tell] = {
    "TextMessage": _text,
    "MultiModalMessage": _text,
    "StopMessage": _text,
    "StructuredMessage": _told(Kind.STEP, "Answered"),
    "ToolCallSummaryMessage": _text,
    "HandoffMessage": _handoff,
    "ThoughtEvent": lambda fields: (Piece(Kind.REASONING, fields.word("content")),),
    "ModelClientStreamingChunkEvent": _chunk,
    "ToolCallRequestEvent": _calls,
    "ToolCallExecutionEvent": _results,
    "MemoryQueryEvent": _told(Kind.QUIET, "Looked into its memory"),
    "CodeGenerationEvent": _told(Kind.STEP, "Wrote code"),
    "CodeExecutionEvent": _told(Kind.STEP, "Ran code"),
    "UserInputRequestedEvent": _told(Kind.PAUSE, "Asked its user"),
    "SelectSpeakerEvent": _told(Kind.QUIET, "Chose who speaks next"),
    "SelectorEvent": _told(Kind.QUIET, "Chose who speaks next"),
}
