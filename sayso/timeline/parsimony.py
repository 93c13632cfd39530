"""Read parsimony-agents' `AgentEventUnion`, each event as `model_dump(mode="json")` writes it."""

from collections.abc import Callable, Mapping

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Fields, Kind, Piece, describe_unknown, read_json

Tell = Callable[[Fields], tuple[Piece, ...]]


def read(event: JsonObject) -> tuple[Piece, ...]:
    """Return what the event shows."""
    fields = Fields(event)
    kind = fields.word("type")
    tell = TELLERS.get(kind)
    return tell(fields) if tell is not None else (describe_unknown(fields, kind),)


def _text(kind: Kind) -> Tell:
    def tell(fields: Fields) -> tuple[Piece, ...]:
        whole = fields.value("delta") is False
        return (Piece(kind, fields.word("content"), key=fields.word("message_id"), whole=whole),)

    return tell


def _tool(fields: Fields) -> tuple[Piece, ...]:
    name, call_id = fields.word("tool_name"), fields.word("tool_call_id")
    if not fields.true("completed"):
        return (Piece(Kind.CALL, note=fields.word("ui_message"), name=name, call_id=call_id),)
    note = fields.word("ui_message_completed")
    return (Piece(Kind.RESULT, note=note, name=name, call_id=call_id, data=fields.value("result")),)


def _observed(fields: Fields) -> tuple[Piece, ...]:
    data = read_json(fields.value("llm_content"))
    return (Piece(Kind.RESULT, name=fields.word("tool_name"), call_id=fields.word("tool_call_id"), data=data),)


def _completed(fields: Fields) -> tuple[Piece, ...]:
    reasoning, text = fields.word("reasoning_text"), fields.word("response_text")
    calls = [_call(one) for one in fields.rows("tool_calls")]
    return (
        *([Piece(Kind.REASONING, reasoning)] if reasoning else []),
        *([Piece(Kind.TEXT, text)] if text else []),
        *calls,
        *([Piece(Kind.QUIET, "The model answered")] if not (reasoning or text or calls) else []),
    )


def _call(one: Fields) -> Piece:
    """A call as providers write it, with or without `function` around name and arguments."""
    inner = one.inner("function") if one.inner("function").raw else one
    given = inner.value("arguments") if "arguments" in inner.raw else inner.value("args")
    return Piece(
        Kind.CALL,
        name=inner.word("name", "tool_name"),
        call_id=one.word("id", "tool_call_id", "call_id"),
        data=read_json(given),
    )


def _asked(fields: Fields) -> tuple[Piece, ...]:
    choices = fields.words("choices")
    note = "\n".join(one for one in (fields.word("context"), " / ".join(choices)) if one)
    return (Piece(Kind.PAUSE, f"Asked: {fields.word('question')}", note),)


def _error(fields: Fields) -> tuple[Piece, ...]:
    failure = fields.inner("failure")
    what = failure.word("kind") or fields.word("error_type")
    note = failure.word("explanation")
    return (
        Piece(Kind.PROBLEM, fields.word("message") or f"Error {what}".strip(), note, data=failure.value("blockers")),
    )


def _handoff(fields: Fields) -> tuple[Piece, ...]:
    data = {name: fields.value(name) for name in ("blockers", "suggested_next_steps") if fields.value(name)}
    return (Piece(Kind.PROBLEM, "Handed the task back", fields.word("rationale"), data=data or None),)


def _partial(fields: Fields) -> tuple[Piece, ...]:
    data = {name: fields.value(name) for name in ("missing", "learned_facts") if fields.value(name)}
    return (Piece(Kind.END, "Ended early with what it had", fields.word("next_step_plan"), data=data or None),)


def _cancelled(fields: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.PROBLEM, f"Cancelled: {fields.word('reason') or 'user_request'}", fields.word("message")),)


TELLERS: Mapping[str, Tell] = {
    "text_delta": _text(Kind.TEXT),
    "reasoning_delta": _text(Kind.REASONING),
    "tool_event": _tool,
    "tool_result_observed": _observed,
    "llm_call_completed": _completed,
    "state_snapshot": lambda fields: (Piece(Kind.QUIET, "Saved its state"),),
    "user_input_requested": _asked,
    "error": _error,
    "handoff": _handoff,
    "partial_run_summary": _partial,
    "run_cancelled": _cancelled,
}
