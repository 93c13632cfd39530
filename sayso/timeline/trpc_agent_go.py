"""Read trpc-agent-go's `Event` as its servers write it, or a whole answer of theirs with its `events`."""

from dataclasses import replace

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Fields, Kind, Piece, describe_unknown, read_json
from sayso.formats.trpc_agent_go import CODE, CODE_RESULT, NODE_CUSTOM, GoEvent, decode, find_suspensions

_OBJECTS = {
    "agent.transfer": (Kind.STEP, "Handed over"),
    "state.update": (Kind.QUIET, "Changed its state"),
    "graph.execution": (Kind.STEP, "The graph ended"),
    "graph.node.start": (Kind.QUIET, "A node started"),
    "graph.node.complete": (Kind.QUIET, "A node ended"),
    "graph.node.error": (Kind.PROBLEM, "A node failed"),
    "graph.checkpoint.interrupt": (Kind.QUIET, "Saved where it waits"),
}
_FAMILIES = ("graph.", "preprocessing.", "postprocessing.")


def read(event: JsonObject) -> tuple[Piece, ...]:
    """Return what the event shows."""
    inner = event.get("events")
    if isinstance(inner, list) and "object" not in event:
        return tuple(piece for one in inner if isinstance(one, dict) for piece in _read(one))
    return _read(event)


def _read(raw: JsonObject) -> tuple[Piece, ...]:
    event = decode(raw)
    pieces = [*_error(event), *_custom(event), *_said(event), *_pauses(event)]
    if not pieces:
        pieces = [_other(event, Fields(raw))]
    told = {
        "who": event.author,
        "invocation": event.invocation_id or event.request_id,
        "parent": event.parent_invocation_id,
        "at_ms": event.at_ms,
    }
    return tuple(
        replace(piece, **told, once=f"{event.id}:{place}" if event.id else "")  # type: ignore[arg-type]
        for place, piece in enumerate(pieces)
    )


def _error(event: GoEvent) -> list[Piece]:
    return [Piece(Kind.PROBLEM, "Failed", event.error)] if event.error else []


def _said(event: GoEvent) -> list[Piece]:
    pieces: list[Piece] = []
    for choice in event.choices:
        pieces += _read_message(event, choice.inner("message"), choice.inner("delta"))
    return pieces


def _read_message(event: GoEvent, message: Fields, delta: Fields) -> list[Piece]:
    tool_id = message.word("tool_id") or delta.word("tool_id")
    if event.object == "tool.response" or message.word("role") == "tool":
        return _read_result(message, delta, tool_id)
    key = event.response_id
    pieces = []
    for kind, name in ((Kind.REASONING, "reasoning_content"), (Kind.TEXT, "content")):
        if delta.word(name):
            pieces.append(Piece(kind, delta.word(name), key=key, whole=False))
        elif message.word(name) and not event.partial:
            pieces.append(_tag(event, Piece(kind, message.word(name))))
    if not event.partial:
        calls = message.rows("tool_calls")
        pieces += [_read_call(event, one) for one in calls]
    return pieces


def _read_call(event: GoEvent, one: Fields) -> Piece:
    function = one.inner("function")
    note = "It goes on in the background" if one.word("id") in event.long_running else ""
    args = read_json(function.value("arguments"))
    return Piece(Kind.CALL, note=note, name=function.word("name"), call_id=one.word("id"), data=args)


def _read_result(message: Fields, delta: Fields, tool_id: str) -> list[Piece]:
    name = message.word("tool_name") or delta.word("tool_name")
    if delta.word("content"):
        return [Piece(Kind.RESULT, name=name, call_id=tool_id, whole=False, data=delta.word("content"))]
    data = read_json(message.value("content"))
    return [Piece(Kind.RESULT, name=name, call_id=tool_id, data=data)]


def _tag(event: GoEvent, piece: Piece) -> Piece:
    """Text that is code or an announcement is told as such."""
    if CODE in event.tags:
        return Piece(Kind.STEP, "Wrote code", piece.text)
    if CODE_RESULT in event.tags:
        return Piece(Kind.STEP, "Ran code", piece.text)
    if event.object == "agent.transfer":
        return Piece(Kind.STEP, "Handed over", piece.text)
    return piece


def _custom(event: GoEvent) -> list[Piece]:
    """What a graph's node tells of its own: a text, how far it is, or data."""
    meta = Fields(event.state.get(NODE_CUSTOM)) if event.object == "graph.node.custom" else Fields(None)
    if not meta.raw:
        return []
    node = meta.word("nodeId") or "a node"
    if meta.word("category") == "text":
        return [Piece(Kind.TEXT, meta.word("message"), key=node, whole=False)]
    if meta.word("category") == "progress":
        return [Piece(Kind.QUIET, f"{node} is at {meta.word('progress') or 0} %", meta.word("message"))]
    return [Piece(Kind.STEP, f"{node}: {meta.word('eventType') or 'told'}", data=meta.value("payload"))]


def _pauses(event: GoEvent) -> list[Piece]:
    return [
        Piece(Kind.PAUSE, f"Waits at {pause.name}", pause.prompt if isinstance(pause.prompt, str) else "", data=rest)
        for pause in find_suspensions([event])
        if pause.mechanism in ("graph_interrupt", "permission")
        for rest in [None if isinstance(pause.prompt, str) else pause.prompt]
    ]


def _other(event: GoEvent, fields: Fields) -> Piece:
    if event.completes_run:
        return Piece(Kind.END, "Done")
    if event.object in _OBJECTS:
        kind, text = _OBJECTS[event.object]
        return Piece(kind, text, data=dict(event.state) or None)
    if event.object.startswith(_FAMILIES):
        return Piece(Kind.QUIET, event.object, data=dict(event.state) or None)
    if event.object.startswith("chat.completion"):
        return Piece(Kind.QUIET, "The model answered")
    return describe_unknown(fields, event.object)
