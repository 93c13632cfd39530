"""Reader for trpc-agent-go's `Event`, or a whole response of its server with `events`."""

from dataclasses import replace

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.timeline.external_events import Fields, Kind, Part, describe_unknown, read_json
from sayso.timeline.trpc_agui import is_agui, read_interrupt
from sayso.timeline.trpc_states import CODE, CODE_RESULT, NODE_CUSTOM, GoEvent, decode, find_suspensions

_OBJECTS = {
    "agent.transfer": (Kind.STEP, "Handed off"),
    "state.update": (Kind.QUIET, "Changed its state"),
    "graph.execution": (Kind.STEP, "Graph ended"),
    "graph.node.start": (Kind.QUIET, "Node started"),
    "graph.node.complete": (Kind.QUIET, "Node ended"),
    "graph.node.error": (Kind.PROBLEM, "Node failed"),
    "graph.checkpoint.interrupt": (Kind.QUIET, "Saved a checkpoint"),
}
_QUIET_AGUI = (
    *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
    *("TOOL_CALL_ARGS", "TOOL_CALL_END", "ACTIVITY_DELTA"),
)
_FAMILIES = ("graph.", "preprocessing.", "postprocessing.")


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event."""
    inner = event.get("events")
    if isinstance(inner, list) and "object" not in event:
        return tuple(part for raw in inner if isinstance(raw, dict) for part in _read(raw))
    return _read_agui(event) if is_agui(event) else _read(event)


def _read_agui(event: JsonObject) -> tuple[Part, ...]:
    """Return the part of an AG-UI event of the same server."""
    fields = Fields(event)
    kind, call_id, name = (fields.text(key) for key in ("type", "toolCallId", "toolCallName"))
    part = describe_unknown(fields, kind)
    if (meta := read_interrupt(event)) is not None:
        part = _read_suspension(str(meta["nodeID"]), meta["interruptValue"])
    elif kind == "TEXT_MESSAGE_CONTENT":
        part = Part(Kind.TEXT, fields.text("delta"), key=fields.text("messageId"), whole=False)
    elif kind == "TOOL_CALL_START":
        part = Part(Kind.CALL, name=name, call_id=call_id)
    elif kind == "TOOL_CALL_RESULT":
        part = Part(Kind.RESULT, call_id=call_id, data=read_json(fields.value("content")))
    elif kind == "RUN_FINISHED":
        part = Part(Kind.END, "Done")
    elif kind == "RUN_ERROR":
        part = Part(Kind.PROBLEM, "Failed", fields.text("message"))
    elif kind in _QUIET_AGUI:
        part = replace(part, kind=Kind.QUIET)
    return (part,)


def _read(raw: JsonObject) -> tuple[Part, ...]:
    event = decode(raw)
    parts = [Part(Kind.PROBLEM, "Failed", event.error)] if event.error else []
    parts += _custom(event)
    for choice in event.choices:
        parts += _read_message(event, choice.inner("message"), choice.inner("delta"))
    parts += [
        _read_suspension(suspension.name, suspension.prompt)
        for suspension in find_suspensions([event])
        if suspension.mechanism in ("graph_interrupt", "permission")
    ]
    if not parts:
        parts = [_other(event, Fields(raw))]
    common = {
        "who": event.author,
        "invocation": event.invocation_id or event.request_id,
        "parent": event.parent_invocation_id,
        "at_ms": event.at_ms,
    }
    return tuple(
        replace(part, **common, once=f"{event.id}:{place}" if event.id else "")  # type: ignore[arg-type]
        for place, part in enumerate(parts)
    )


def _read_message(event: GoEvent, message: Fields, delta: Fields) -> list[Part]:
    tool_id = message.text("tool_id") or delta.text("tool_id")
    if event.object == "tool.response" or message.text("role") == "tool":
        name = message.text("tool_name") or delta.text("tool_name")
        if delta.text("content"):
            return [Part(Kind.RESULT, name=name, call_id=tool_id, whole=False, data=delta.text("content"))]
        data = read_json(message.value("content"))
        return [Part(Kind.RESULT, name=name, call_id=tool_id, data=data)]
    key = event.response_id
    parts = []
    for kind, name in ((Kind.REASONING, "reasoning_content"), (Kind.TEXT, "content")):
        if delta.text(name):
            parts.append(Part(kind, delta.text(name), key=key, whole=False))
        elif message.text(name) and not event.partial:
            parts.append(_tag(event, Part(kind, message.text(name))))
    for call in () if event.partial else message.rows("tool_calls"):
        function, call_id = call.inner("function"), call.text("id")
        note = "Continues in the background" if call_id in event.long_running else ""
        args = read_json(function.value("arguments"))
        parts.append(Part(Kind.CALL, note=note, name=function.text("name"), call_id=call_id, data=args))
    return parts


def _tag(event: GoEvent, part: Part) -> Part:
    steps = {"Wrote code": CODE in event.tags, "Ran code": CODE_RESULT in event.tags}
    steps["Handed off"] = event.object == "agent.transfer"
    return next((Part(Kind.STEP, step, part.text) for step, present in steps.items() if present), part)


def _custom(event: GoEvent) -> list[Part]:
    meta = Fields(event.state.get(NODE_CUSTOM)) if event.object == "graph.node.custom" else Fields(None)
    if not meta.raw:
        return []
    node = meta.text("nodeId") or "a node"
    if meta.text("category") == "text":
        return [Part(Kind.TEXT, meta.text("message"), key=node, whole=False)]
    if meta.text("category") == "progress":
        return [Part(Kind.QUIET, f"{node} is at {meta.text('progress') or 0} %", meta.text("message"))]
    return [Part(Kind.STEP, f"{node}: {meta.text('eventType') or 'event'}", data=meta.value("payload"))]


def _read_suspension(name: str, prompt: JsonValue) -> Part:
    if isinstance(prompt, str):
        return Part(Kind.WAIT, f"Waits at {name}", prompt)
    return Part(Kind.WAIT, f"Waits at {name}", data=prompt)


def _other(event: GoEvent, fields: Fields) -> Part:
    if event.completes_run:
        return Part(Kind.END, "Done")
    if event.object in _OBJECTS:
        kind, text = _OBJECTS[event.object]
        return Part(kind, text, data=dict(event.state) or None)
    if event.object.startswith(_FAMILIES):
        return Part(Kind.QUIET, event.object, data=dict(event.state) or None)
    if event.object.startswith("chat.completion"):
        return Part(Kind.QUIET, "The model answered")
    return describe_unknown(fields, event.object)
