"""Reader for trpc-agent-go's `Event`, or a whole response of its server with `events`."""

from dataclasses import replace

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.timeline.external_events import Fields, Kind, Part, describe_unknown, read_json
from sayso.timeline.trpc_agui import is_agui, read_custom, read_interrupt
from sayso.timeline.trpc_states import CODE, CODE_RESULT, NODE_CUSTOM, TRANSFER, GoEvent, decode, find_suspensions

_ENDED = "The request ended"
_BARRIER = "Waits until its events are saved"
_OBJECTS = {
    "": (Kind.QUIET, _BARRIER),
    "agent.transfer": (Kind.STEP, "Handed off"),
    "state.update": (Kind.QUIET, "Changed its state"),
    "graph.barrier": (Kind.QUIET, _BARRIER),
    "graph.execution": (Kind.STEP, "Graph ended"),
    "graph.node.barrier": (Kind.QUIET, _BARRIER),
    "graph.node.start": (Kind.QUIET, "Node {node} started"),
    "graph.node.complete": (Kind.QUIET, "Node {node} ended"),
    "graph.node.error": (Kind.PROBLEM, "Node {node} failed"),
    "graph.checkpoint.interrupt": (Kind.QUIET, "Saved a checkpoint"),
}
_SUMMARIES = ("graph.execution", "runner.completion")
"""Their messages repeat what the nodes of a graph said."""

_BUILT_IN_TAGS = (CODE, CODE_RESULT, TRANSFER)
_QUIET_AGUI = (
    *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
    *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "REASONING_END"),
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
    elif kind == "CUSTOM":
        part = _read_custom(read_custom(event))
    elif kind == "TEXT_MESSAGE_CONTENT":
        part = Part(Kind.TEXT, fields.text("delta"), key=fields.text("messageId"), whole=False)
    elif kind == "REASONING_MESSAGE_CONTENT":
        part = Part(Kind.REASONING, fields.text("delta"), key=fields.text("messageId"), whole=False)
    elif kind == "TOOL_CALL_START":
        part = Part(Kind.CALL, name=name, call_id=call_id)
    elif kind == "TOOL_CALL_RESULT":
        part = Part(Kind.RESULT, call_id=call_id, data=read_json(fields.value("content")))
    elif kind == "RUN_FINISHED":
        part = Part(Kind.END, _ENDED)
    elif kind == "RUN_ERROR":
        part = Part(Kind.PROBLEM, "Failed", fields.text("message"))
    elif kind in _QUIET_AGUI:
        part = replace(part, kind=Kind.QUIET)
    return (replace(part, at_ms=fields.count("timestamp") or None),)


def _read(raw: JsonObject) -> tuple[Part, ...]:
    event = decode(raw)
    tool_failed = event.object == "tool.response" and event.error
    parts = [Part(Kind.PROBLEM, "Failed", event.error)] if event.error and not tool_failed else []
    if event.object == "graph.node.custom" and isinstance(meta := event.state.get(NODE_CUSTOM), dict):
        parts.append(_read_custom(Fields(meta)))
    parts += _read_node(event)
    for choice in event.choices if event.object not in _SUMMARIES else ():
        if choice.text("finish_reason") != "error":  # its message says nothing that the error does not
            parts += _read_message(event, choice.inner("message"), choice.inner("delta"))
    if event.done and event.usage.count("total_tokens"):
        parts.append(_read_usage(event.usage))
    parts += [
        _read_suspension(suspension.name, suspension.prompt)
        for suspension in find_suspensions([event])
        if suspension.mechanism in ("graph_interrupt", "permission")
    ]
    if not parts:
        parts = [_other(event, Fields(raw))]
    return tuple(_complete(event, place, part) for place, part in enumerate(parts))


def _complete(event: GoEvent, place: int, part: Part) -> Part:
    """Add what all parts of an event share."""
    tags = ", ".join(tag for tag in event.tags if tag not in _BUILT_IN_TAGS)
    notes = (part.note, f"Tags: {tags}" if tags else "")
    return replace(
        part,
        note="\n".join(note for note in notes if note),
        who=event.author,
        invocation=event.invocation_id or event.request_id,
        parent=event.parent_invocation_id,
        at_ms=event.at_ms,
        once=part.once or (f"{event.id}:{place}" if event.id else ""),
    )


def _read_message(event: GoEvent, message: Fields, delta: Fields) -> list[Part]:
    tool_id = message.text("tool_id") or delta.text("tool_id")
    if event.object == "tool.response" or message.text("role") == "tool":
        name = message.text("tool_name") or delta.text("tool_name")
        if delta.text("content"):
            return [Part(Kind.RESULT, name=name, call_id=tool_id, whole=False, data=delta.text("content"))]
        if event.error:
            return [Part(Kind.RESULT, event.error, name=name, call_id=tool_id, ok=False)]
        note = "The agent ends with this result" if event.skips_summarization else ""
        return [Part(Kind.RESULT, note=note, name=name, call_id=tool_id, data=read_json(message.value("content")))]
    key = event.response_id
    parts = []
    for kind, name in ((Kind.REASONING, "reasoning_content"), (Kind.TEXT, "content")):
        if delta.text(name):
            parts.append(Part(kind, delta.text(name), key=key, whole=False))
        elif message.text(name) and not event.partial:
            parts.append(_tag(event, _read_whole(event, key, kind, message.text(name))))
    for call in () if event.partial else message.rows("tool_calls"):
        function, call_id = call.inner("function"), call.text("id")
        note = "Continues in the background" if call_id in event.long_running else ""
        args = read_json(function.value("arguments"))
        parts.append(Part(Kind.CALL, note=note, name=function.text("name"), call_id=call_id, data=args))
    return parts


def _read_whole(event: GoEvent, response_id: str, kind: Kind, text: str) -> Part:
    """Return a whole message of a model, which comes in an event of its own, in that of its node, or in both."""
    return Part(kind, text, once=f"{event.invocation_id}:{response_id}:{kind}:{text}" if response_id else "")


def _tag(event: GoEvent, part: Part) -> Part:
    steps = {"Wrote code": CODE in event.tags, "Ran code": CODE_RESULT in event.tags}
    steps["Handed off"] = event.object == "agent.transfer" or TRANSFER in event.tags
    return next((Part(Kind.STEP, step, part.text) for step, present in steps.items() if present), part)


def _read_node(event: GoEvent) -> list[Part]:
    """Return the model's answer or the started call of a graph's node, which no event of their own need show."""
    model, tool = Fields(event.state.get("_model_metadata")), Fields(event.state.get("_tool_metadata"))
    if tool.text("phase") == "start":
        args = read_json(tool.value("input"))
        return [Part(Kind.CALL, name=tool.text("toolName"), call_id=tool.text("toolId"), data=args)]
    if model.text("phase") == "start":
        return [Part(Kind.QUIET, f"Called {model.text('modelName') or 'the model'}", data=model.value("input"))]
    if model.text("phase") != "complete":
        return []
    output, took = model.text("output"), f"Took {_seconds(model.count('duration'))}"
    text = _read_whole(event, model.text("responseId"), Kind.TEXT, output)
    return [*([text] if output else []), Part(Kind.QUIET, "The model answered", took)]


def _read_usage(usage: Fields) -> Part:
    timing = usage.inner("timing_info")
    durations = {
        "first token of the run after": timing.count("time_to_first_token"),
        "reasoning took": timing.count("reasoning_duration"),
    }
    notes = [f"{usage.count('prompt_tokens')} tokens in, {usage.count('completion_tokens')} out"]
    notes += [f"{name} {_seconds(duration)}" for name, duration in durations.items() if duration]
    return Part(Kind.QUIET, "The model answered", "; ".join(notes))


def _seconds(nanoseconds: int) -> str:
    seconds = nanoseconds / 1e9
    return f"{seconds:.1f} s" if seconds >= 1 else f"{nanoseconds / 1e6:.3g} ms"


def _read_custom(meta: Fields) -> Part:
    """Return the part of what a node says itself, by its category."""
    node = meta.text("nodeId") or "a node"
    if meta.text("category") == "text":
        return Part(Kind.TEXT, meta.text("message"), key=node, whole=False)
    if meta.text("category") == "progress":
        progress = meta.value("progress")
        percent = round(progress) if isinstance(progress, int | float) else 0
        return Part(Kind.QUIET, f"{node} is at {percent} %", meta.text("message"))
    return Part(Kind.STEP, f"{node}: {meta.text('eventType') or 'event'}", data=meta.value("payload"))


def _read_suspension(name: str, prompt: JsonValue) -> Part:
    if isinstance(prompt, str):
        return Part(Kind.WAIT, f"Waits at {name}", prompt)
    return Part(Kind.WAIT, f"Waits at {name}", data=prompt)


def _other(event: GoEvent, fields: Fields) -> Part:
    if event.completes_run:
        last = [choice.inner("message").text("content") for choice in event.choices]
        return Part(Kind.END, _ENDED, data="\n".join(last) or None)
    if event.object in _OBJECTS and (event.object or event.requires_completion):
        kind, text = _OBJECTS[event.object]
        node = Fields(event.state.get("_node_metadata")).text("nodeId") or event.author
        return Part(kind, text.format(node=node), data=dict(event.state) or None)
    if event.object.startswith(_FAMILIES):
        return Part(Kind.QUIET, event.object.replace(".", ": ", 1).capitalize(), data=dict(event.state) or None)
    if event.object.startswith("chat.completion"):
        return Part(Kind.QUIET, "The model answered")
    return describe_unknown(fields, event.object)
