"""Read AFK's `AgentRunEvent`: `type`, `run_id`, `state`, `step`, `message` and `data`."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Fields, Kind, Piece, describe_unknown

Tell = Callable[[Fields, Fields], tuple[Piece, ...]]
"""What an event is told as, from itself and from its data."""

_ONCE_A_STEP = ("step_started", "llm_completed", "tool_batch_started")
"""AFK emits these again where it resumes a step whose model has answered."""


def read(event: JsonObject) -> tuple[Piece, ...]:
    """Return what the event shows; the same event of the same step again shows nothing new."""
    fields, pieces = Fields(event), read_with(TELLERS, event)
    kind, run_id, step = fields.word("type"), fields.word("run_id"), fields.word("step")
    if kind not in _ONCE_A_STEP or not run_id or not step:
        return pieces
    same = f"{run_id}:{step}:{kind}:{fields.value('data')}"
    return tuple(replace(piece, once=f"{same}:{place}") for place, piece in enumerate(pieces))


def read_with(tellers: Mapping[str, Tell], event: JsonObject) -> tuple[Piece, ...]:
    """Return what an event of this shape shows, with words of one's own for its kinds."""
    fields = Fields(event)
    data, kind = fields.inner("data"), fields.word("type")
    tell = tellers.get(kind)
    pieces = tell(fields, data) if tell is not None else (describe_unknown(fields, kind),)
    invocation = fields.word("run_id", "invocation")
    parent = fields.word("parent_run_id", "parent") or data.word("parent_run_id")
    who = fields.word("who") or data.word("agent_name")
    return tuple(
        replace(piece, invocation=invocation, parent=parent, who=piece.who or who, at_ms=None) for piece in pieces
    )


def _started(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    who = data.word("agent_name", "agent") or "The agent"
    return (Piece(Kind.STEP, f"{who} {'went on' if data.true('resumed') else 'started'}", fields.word("message")),)


def _step(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    number = fields.word("step") or data.word("step")
    return (Piece(Kind.QUIET, f"Step {number}".strip(), fields.word("message")),)


def _llm_called(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.QUIET, f"Asked {data.word('model') or 'the model'}", fields.word("message")),)


def _chunk(kind: Kind) -> Tell:
    def tell(fields: Fields, data: Fields) -> tuple[Piece, ...]:
        text = data.word("delta", "text", "content") or fields.word("message")
        return (Piece(kind, text, key=data.word("message_id"), whole=False),)

    return tell


def _llm_completed(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    text = data.word("text")
    calls = data.count("tool_call_count")
    asked = f"The model asked for {calls} call{'' if calls == 1 else 's'}" if calls else "The model answered"
    said = (Piece(Kind.TEXT, text),) if text else ()
    return (*said, Piece(Kind.QUIET, asked)) if calls or not said else said


def _batch(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    names, ids = data.words("tool_names"), data.words("tool_call_ids")
    if not names:
        return (Piece(Kind.QUIET, f"{data.count('tool_call_count')} calls"),)
    ids += [""] * (len(names) - len(ids))
    return tuple(Piece(Kind.CALL, name=name, call_id=call_id) for name, call_id in zip(names, ids, strict=False))


_ACTIONS = {
    "allow": (Kind.QUIET, "allowed"),
    "deny": (Kind.PROBLEM, "denied"),
    "defer": (Kind.STEP, "put to a person"),
    "request_approval": (Kind.STEP, "put to a person"),
    "request_user_input": (Kind.STEP, "a value is asked for"),
}


def _policy(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    action = data.word("action")
    kind, words = _ACTIONS.get(action, (Kind.STEP, action or "judged"))
    what = data.word("tool_name", "event_type") or "a call"
    return (Piece(kind, f"Its own policy: {what} {words}", data.word("reason"), data=_rest(data, "matched_rules")),)


def _result(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    return (
        Piece(
            Kind.RESULT,
            data.word("error"),
            name=data.word("tool_name", "name"),
            call_id=data.word("tool_call_id", "call_id"),
            ok=data.value("success") is not False,
            data=data.value("output"),
        ),
    )


def _call(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    name, call_id = data.word("tool_name", "name"), data.word("tool_call_id", "call_id")
    return (Piece(Kind.CALL, name=name, call_id=call_id, data=data.value("args")),)


def _paused(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    what = data.word("tool_name") or fields.word("message")
    return (
        Piece(Kind.PAUSE, f"Paused: {what}" if what else "Paused", data.word("reason"), data=data.value("payload")),
    )


def _told(kind: Kind, text: str) -> Tell:
    """What is told in a sentence, with the event's message or error, and the facts in its data."""

    def tell(fields: Fields, data: Fields) -> tuple[Piece, ...]:
        what = data.word("tool_name", "subagent_name", "agent_name")
        sentence = f"{text}: {what}" if what else text
        note = fields.word("message") or data.word("error", "message", "summary", "final_text", "reason", "text")
        return (Piece(kind, sentence, note, data=dict(data.raw) or None),)

    return tell


def _message(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.TEXT, data.word("text", "content"), who=data.word("role")),)


def _warning(fields: Fields, data: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.WARNING, fields.word("message") or data.word("message") or "Warning"),)


def _rest(data: Fields, *names: str) -> JsonObject | None:
    return {name: data.value(name) for name in names if data.value(name)} or None


TELLERS: Mapping[str, Tell] = {
    "run_started": _started,
    "step_started": _step,
    "llm_called": _llm_called,
    "text_delta": _chunk(Kind.TEXT),
    "llm_completed": _llm_completed,
    "tool_batch_started": _batch,
    "policy_decision": _policy,
    "tool_completed": _result,
    "tool_deferred": _told(Kind.STEP, "Goes on in the background"),
    "tool_background_resolved": _told(Kind.STEP, "Done in the background"),
    "tool_background_failed": _told(Kind.PROBLEM, "Failed in the background"),
    "subagent_started": _told(Kind.STEP, "A subagent started"),
    "subagent_completed": _told(Kind.STEP, "A subagent ended"),
    "run_paused": _paused,
    "run_resumed": _told(Kind.STEP, "Went on"),
    "run_cancelled": _told(Kind.PROBLEM, "Cancelled"),
    "run_interrupted": _told(Kind.PROBLEM, "Interrupted"),
    "run_failed": _told(Kind.PROBLEM, "Failed"),
    "run_completed": _told(Kind.END, "Done"),
    "warning": _warning,
}

OUR_TELLERS: Mapping[str, Tell] = {
    **TELLERS,
    "reasoning_delta": _chunk(Kind.REASONING),
    "message": _message,
    "tool_call": _call,
    "tool_result": _result,
    "note": _told(Kind.STEP, "Note"),
}
"""The same and the few kinds that agents of no framework need."""
