"""Reader for parsimony-agents' `AgentEventUnion`, as `model_dump(mode="json")` writes it."""

from collections.abc import Callable, Mapping

from sayso.core.canonical_json import JsonObject
from sayso.timeline.external_events import Fields, Kind, Part, read_json, read_parts

Read = Callable[[Fields], Part | list[Part]]


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event."""
    fields = Fields(event)
    return tuple(read_parts(READERS, fields.text("type"), fields))


def _text(kind: Kind) -> Read:
    def read_part(fields: Fields) -> Part:
        whole = fields.value("delta") is False
        return Part(kind, fields.text("content"), key=fields.text("message_id"), whole=whole)

    return read_part


def _tool(fields: Fields) -> Part:
    name, call_id = fields.text("tool_name"), fields.text("tool_call_id")
    if not fields.flag("completed"):
        return Part(Kind.CALL, note=fields.text("ui_message"), name=name, call_id=call_id)
    note = fields.text("ui_message_completed")
    return Part(Kind.RESULT, note=note, name=name, call_id=call_id, data=fields.value("result"))


def _completed(fields: Fields) -> list[Part]:
    reasoning, text = fields.text("reasoning_text"), fields.text("response_text")
    texts = [Part(kind, said) for kind, said in ((Kind.REASONING, reasoning), (Kind.TEXT, text)) if said]
    parts, used = [*texts, *map(_call, fields.rows("tool_calls"))], _describe_use(fields)
    return [*parts, Part(Kind.QUIET, "The model answered", used)] if used or not parts else parts


def _describe_use(fields: Fields) -> str:
    """Return the tokens and the time of a model call, as far as they are numbers."""
    usage = fields.inner("usage").raw
    figures = (
        (usage.get("prompt_tokens"), "input tokens"),
        (usage.get("completion_tokens"), "output tokens"),
        (fields.value("latency_ms"), "ms"),
    )
    return ", ".join(f"{value} {unit}" for value, unit in figures if type(value) is int and value >= 0)


def _call(call: Fields) -> Part:
    """Read a call, with or without `function` around its name and arguments."""
    inner = call.inner("function") if call.inner("function").raw else call
    data = read_json(inner.value("arguments" if "arguments" in inner.raw else "args"))
    call_id = call.text("id", "tool_call_id", "call_id")
    return Part(Kind.CALL, name=inner.text("name", "tool_name"), call_id=call_id, data=data)


def _error(fields: Fields) -> Part:
    failure = fields.inner("failure")
    error = failure.text("kind") or fields.text("error_type")
    note = failure.text("explanation")
    return Part(Kind.PROBLEM, fields.text("message") or f"Error {error}".strip(), note, data=failure.value("blockers"))


def _end(kind: Kind, text: str, note: str, *facts: str) -> Read:
    def read_part(fields: Fields) -> Part:
        data = {name: fields.value(name) for name in facts if fields.value(name)}
        return Part(kind, text, fields.text(note), data=data or None)

    return read_part


READERS: Mapping[str, Read] = {
    "text_delta": _text(Kind.TEXT),
    "reasoning_delta": _text(Kind.REASONING),
    "tool_event": _tool,
    "tool_result_observed": lambda fields: Part(
        Kind.RESULT,
        name=fields.text("tool_name"),
        call_id=fields.text("tool_call_id"),
        data=read_json(fields.value("llm_content")),
    ),
    "llm_call_completed": _completed,
    "state_snapshot": lambda fields: Part(Kind.QUIET, "Saved its state"),
    "user_input_requested": lambda fields: Part(
        Kind.WAIT,
        f"Asked: {fields.text('question')}",
        "\n".join(filter(None, (fields.text("context"), " / ".join(fields.texts("choices"))))),
    ),
    "error": _error,
    "handoff": _end(Kind.PROBLEM, "Handed the task back", "rationale", "blockers", "suggested_next_steps"),
    "partial_run_summary": _end(
        Kind.END, "Ended early with a partial result", "next_step_plan", "missing", "learned_facts"
    ),
    "run_cancelled": lambda fields: Part(
        Kind.PROBLEM, f"Cancelled: {fields.text('reason') or 'user_request'}", fields.text("message")
    ),
}
