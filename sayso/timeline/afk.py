"""Reader for AFK's `AgentRunEvent`: `type`, `run_id`, `state`, `step`, `message` and `data`."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sayso.core.canonical_json import JsonObject
from sayso.timeline.external_events import Fields, Kind, Part, read_parts

Read = Callable[[Fields, Fields], Part | list[Part]]
"""Reads an event, given its fields and those of its data."""

_ONCE_A_STEP = ("step_started", "llm_completed", "tool_batch_started")
"""AFK emits these again when it resumes a step whose model has answered."""


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event. Repeats within a step share `once`."""
    fields, parts = Fields(event), read_with(READERS, event)
    kind, run_id, step = fields.text("type"), fields.text("run_id"), fields.text("step")
    if kind not in _ONCE_A_STEP or not run_id or not step:
        return parts
    key = f"{run_id}:{step}:{kind}:{fields.value('data')}"
    return tuple(replace(part, once=f"{key}:{place}") for place, part in enumerate(parts))


def read_with(readers: Mapping[str, Read], event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event, read by the given readers."""
    fields = Fields(event)
    data = fields.inner("data")
    parts = read_parts(readers, fields.text("type"), fields, data)
    invocation = fields.text("run_id", "invocation")
    parent = fields.text("parent_run_id", "parent") or data.text("parent_run_id")
    who = fields.text("who") or data.text("agent_name")
    return tuple(replace(part, invocation=invocation, parent=parent, who=part.who or who, at_ms=None) for part in parts)


def _started(fields: Fields, data: Fields) -> Part:
    who = data.text("agent_name", "agent") or "The agent"
    return Part(Kind.STEP, f"{who} {'resumed' if data.flag('resumed') else 'started'}", fields.text("message"))


def _chunk(kind: Kind) -> Read:
    def read_part(fields: Fields, data: Fields) -> Part:
        text = data.text("delta", "text", "content") or fields.text("message")
        return Part(kind, text, key=data.text("message_id"), whole=False)

    return read_part


def _llm_completed(fields: Fields, data: Fields) -> list[Part]:
    text = data.text("text")
    calls = data.count("tool_call_count")
    summary = f"The model requested {calls} call{'' if calls == 1 else 's'}" if calls else "The model answered"
    message = [Part(Kind.TEXT, text)] if text else []
    return [*message, Part(Kind.QUIET, summary)] if calls or not message else message


def _batch(fields: Fields, data: Fields) -> list[Part]:
    names, ids = data.texts("tool_names"), data.texts("tool_call_ids")
    if not names:
        return [Part(Kind.QUIET, f"{data.count('tool_call_count')} calls")]
    ids += [""] * (len(names) - len(ids))
    return [Part(Kind.CALL, name=name, call_id=call_id) for name, call_id in zip(names, ids, strict=False)]


_ACTIONS = {
    "allow": (Kind.QUIET, "allowed"),
    "deny": (Kind.PROBLEM, "denied"),
    "defer": (Kind.STEP, "sent to a reviewer"),
    "request_approval": (Kind.STEP, "sent to a reviewer"),
    "request_user_input": (Kind.STEP, "needs a value"),
}


def _policy(fields: Fields, data: Fields) -> Part:
    action = data.text("action")
    kind, verb = _ACTIONS.get(action, (Kind.STEP, action or "evaluated"))
    subject = data.text("tool_name", "event_type") or "a call"
    rules = data.value("matched_rules")
    details: JsonObject | None = {"matched_rules": rules} if rules else None
    return Part(kind, f"AFK policy: {subject} {verb}", data.text("reason"), data=details)


def _result(fields: Fields, data: Fields) -> Part:
    return Part(
        Kind.RESULT,
        data.text("error"),
        name=data.text("tool_name", "name"),
        call_id=data.text("tool_call_id", "call_id"),
        ok=data.value("success") is not False,
        data=data.value("output"),
    )


def _waits(fields: Fields, data: Fields) -> Part:
    subject = data.text("tool_name") or fields.text("message")
    return Part(
        Kind.WAIT, f"Paused: {subject}" if subject else "Paused", data.text("reason"), data=data.value("payload")
    )


def _note(kind: Kind, text: str) -> Read:
    def read_part(fields: Fields, data: Fields) -> Part:
        subject = data.text("tool_name", "subagent_name", "agent_name")
        sentence = f"{text}: {subject}" if subject else text
        note = fields.text("message") or data.text("error", "message", "summary", "final_text", "reason", "text")
        return Part(kind, sentence, note, data=dict(data.raw) or None)

    return read_part


READERS: Mapping[str, Read] = {
    "run_started": _started,
    "step_started": lambda fields, data: Part(
        Kind.QUIET, f"Step {fields.text('step') or data.text('step')}".strip(), fields.text("message")
    ),
    "llm_called": lambda fields, data: Part(
        Kind.QUIET, f"Called {data.text('model') or 'the model'}", fields.text("message")
    ),
    "text_delta": _chunk(Kind.TEXT),
    "llm_completed": _llm_completed,
    "tool_batch_started": _batch,
    "policy_decision": _policy,
    "tool_completed": _result,
    "tool_deferred": _note(Kind.STEP, "Continues in the background"),
    "tool_background_resolved": _note(Kind.STEP, "Completed in the background"),
    "tool_background_failed": _note(Kind.PROBLEM, "Failed in the background"),
    "subagent_started": _note(Kind.STEP, "Subagent started"),
    "subagent_completed": _note(Kind.STEP, "Subagent ended"),
    "run_paused": _waits,
    "run_resumed": _note(Kind.STEP, "Resumed"),
    "run_cancelled": _note(Kind.PROBLEM, "Cancelled"),
    "run_interrupted": _note(Kind.PROBLEM, "Interrupted"),
    "run_failed": _note(Kind.PROBLEM, "Failed"),
    "run_completed": _note(Kind.END, "Done"),
    "warning": lambda fields, data: Part(Kind.WARNING, fields.text("message") or data.text("message") or "Warning"),
}

SAYSO_READERS: Mapping[str, Read] = {
    **READERS,
    "reasoning_delta": _chunk(Kind.REASONING),
    "message": lambda fields, data: Part(Kind.TEXT, data.text("text", "content"), who=data.text("role")),
    "tool_call": lambda fields, data: Part(
        Kind.CALL,
        name=data.text("tool_name", "name"),
        call_id=data.text("tool_call_id", "call_id"),
        data=data.value("args"),
    ),
    "tool_result": _result,
    "note": _note(Kind.STEP, "Note"),
}
"""Readers for Sayso's own format: AFK's types and those of agents without a framework."""
