"""Reader for parsimony-agents' `AgentEventUnion`, as `model_dump(mode="json")` writes it."""

from collections.abc import Callable, Mapping

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Fields, Kind, Part, describe_unknown, read_json

Read = Callable[[Fields], tuple[Part, ...]]


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event."""
    fields = Fields(event)
    kind = fields.text("type")
    reader = READERS.get(kind)
    return reader(fields) if reader is not None else (describe_unknown(fields, kind),)


def _text(kind: Kind) -> Read:
    def read_part(fields: Fields) -> tuple[Part, ...]:
        whole = fields.value("delta") is False
        return (Part(kind, fields.text("content"), key=fields.text("message_id"), whole=whole),)

    return read_part


def _tool(fields: Fields) -> tuple[Part, ...]:
    name, call_id = fields.text("tool_name"), fields.text("tool_call_id")
    if not fields.flag("completed"):
        return (Part(Kind.CALL, note=fields.text("ui_message"), name=name, call_id=call_id),)
    note = fields.text("ui_message_completed")
    return (Part(Kind.RESULT, note=note, name=name, call_id=call_id, data=fields.value("result")),)


def _completed(fields: Fields) -> tuple[Part, ...]:
    reasoning, text = fields.text("reasoning_text"), fields.text("response_text")
    calls = [_call(call) for call in fields.rows("tool_calls")]
    return (
        *([Part(Kind.REASONING, reasoning)] if reasoning else []),
        *([Part(Kind.TEXT, text)] if text else []),
        *calls,
        *([Part(Kind.QUIET, "The model answered")] if not (reasoning or text or calls) else []),
    )


def _call(call: Fields) -> Part:
    """Read a call, with or without `function` around its name and arguments."""
    inner = call.inner("function") if call.inner("function").raw else call
    arguments = inner.value("arguments") if "arguments" in inner.raw else inner.value("args")
    return Part(
        Kind.CALL,
        name=inner.text("name", "tool_name"),
        call_id=call.text("id", "tool_call_id", "call_id"),
        data=read_json(arguments),
    )


def _asked(fields: Fields) -> tuple[Part, ...]:
    choices = fields.texts("choices")
    note = "\n".join(filter(None, (fields.text("context"), " / ".join(choices))))
    return (Part(Kind.WAIT, f"Asked: {fields.text('question')}", note),)


def _error(fields: Fields) -> tuple[Part, ...]:
    failure = fields.inner("failure")
    error = failure.text("kind") or fields.text("error_type")
    note = failure.text("explanation")
    return (
        Part(Kind.PROBLEM, fields.text("message") or f"Error {error}".strip(), note, data=failure.value("blockers")),
    )


def _end(kind: Kind, text: str, note: str, *facts: str) -> Read:
    def read_part(fields: Fields) -> tuple[Part, ...]:
        data = {name: fields.value(name) for name in facts if fields.value(name)}
        return (Part(kind, text, fields.text(note), data=data or None),)

    return read_part


READERS: Mapping[str, Read] = {
    "text_delta": _text(Kind.TEXT),
    "reasoning_delta": _text(Kind.REASONING),
    "tool_event": _tool,
    "tool_result_observed": lambda fields: (
        Part(
            Kind.RESULT,
            name=fields.text("tool_name"),
            call_id=fields.text("tool_call_id"),
            data=read_json(fields.value("llm_content")),
        ),
    ),
    "llm_call_completed": _completed,
    "state_snapshot": lambda fields: (Part(Kind.QUIET, "Saved its state"),),
    "user_input_requested": _asked,
    "error": _error,
    "handoff": _end(Kind.PROBLEM, "Handed the task back", "rationale", "blockers", "suggested_next_steps"),
    "partial_run_summary": _end(
        Kind.END, "Ended early with a partial result", "next_step_plan", "missing", "learned_facts"
    ),
    "run_cancelled": lambda fields: (
        Part(Kind.PROBLEM, f"Cancelled: {fields.text('reason') or 'user_request'}", fields.text("message")),
    ),
}
