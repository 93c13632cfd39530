"""Read events of trpc-agent-go, find where a run waits, and write the requests that resume it."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.timeline.external_events import Fields, read_json, read_moment
from sayso.timeline.trpc_agui import fold, is_agui

PREGEL, NODE_CUSTOM = "_pregel_metadata", "_node_custom_metadata"
CODE, CODE_RESULT, TRANSFER = "code_execution_code", "code_execution_result", "transfer"

_BREAKPOINTS = ("static_interrupt_before:", "static_interrupt_after:")
_COMPLETION = "runner.completion"


@dataclass(frozen=True)
class GoCall:
    """A tool call of the model. Arguments that are not JSON stay text."""

    id: str
    name: str
    args: JsonValue


@dataclass(frozen=True)
class GoEvent:
    """A decoded event. `state` holds its state changes as JSON or text."""

    id: str
    object: str
    request_id: str
    invocation_id: str
    parent_invocation_id: str
    trigger_id: str
    author: str
    branch: str
    filter_key: str
    tags: tuple[str, ...]
    at_ms: int | None
    response_id: str
    done: bool
    partial: bool
    error: str
    calls: tuple[GoCall, ...]
    long_running: frozenset[str]
    state: Mapping[str, JsonValue]
    choices: tuple[Fields, ...] = ()
    usage: Fields = field(default_factory=lambda: Fields(None))
    requires_completion: bool = False
    skips_summarization: bool = False

    @property
    def completes_run(self) -> bool:
        """Whether the event ends the run. `done` alone ends one response."""
        return self.object == _COMPLETION and self.done


Mechanism = Literal["graph_interrupt", "external_tool", "long_running_tool", "permission"]


@dataclass(frozen=True)
class GoSuspension:
    """One thing that a run waits for; without a `key` it cannot be resumed. The checkpoint is the outermost graph's."""

    mechanism: Mechanism
    request_id: str
    invocation_id: str
    key: str
    name: str
    prompt: JsonValue
    lineage_id: str = ""
    checkpoint_id: str = ""
    checkpoint_ns: str = ""


@dataclass
class GoInvocation:
    """An invocation and those that it started. `trigger_id` tells two calls of one sub-agent apart."""

    id: str
    parent_id: str = ""
    trigger_id: str = ""
    author: str = ""
    branch: str = ""
    events: list[GoEvent] = field(default_factory=list)
    children: list["GoInvocation"] = field(default_factory=list)


def decode(event: JsonObject) -> GoEvent:
    """Decode an event. Malformed fields are dropped."""
    fields = Fields(event)
    nested = fields.inner("response")
    choices = tuple(fields.rows("choices"))
    branch = fields.text("branch")
    error = fields.inner("error")
    message = error.text("message") or error.text("type")
    ids: Any = fields.value("longRunningToolIDs")  # a Go set is an object with empty values
    ids = ids if isinstance(ids, dict | list) else ()
    return GoEvent(
        id=fields.text("id"),
        object=fields.text("object"),
        request_id=fields.text("requestID"),
        invocation_id=fields.text("invocationId"),
        parent_invocation_id=fields.text("parentInvocationId"),
        trigger_id=fields.inner("parentMetadata").text("triggerId"),
        author=fields.text("author"),
        branch=branch,
        filter_key=fields.text("filterKey") or (branch if not fields.count("version") else ""),
        tags=tuple(tag.strip() for tag in fields.text("tag").split(";") if tag.strip()),
        at_ms=read_moment(fields.text("timestamp")),
        response_id=nested.text("id"),
        done=fields.flag("done"),
        partial=fields.flag("is_partial"),
        error=message or ("unknown error" if fields.text("object") == "error" or error.raw else ""),
        calls=tuple(
            GoCall(call.text("id"), function.text("name"), read_json(function.value("arguments")))
            for choice in choices
            for call in choice.inner("message").rows("tool_calls")
            for function in (call.inner("function"),)
        ),
        long_running=frozenset(key for key in ids if isinstance(key, str)),
        state={key: _read_bytes(value) for key, value in fields.inner("stateDelta").raw.items()},
        choices=choices,
        usage=fields.inner("usage"),
        requires_completion=fields.flag("requiresCompletion"),
        skips_summarization=fields.inner("actions").flag("skipSummarization"),
    )


def decode_all(payload: JsonValue) -> list[GoEvent]:
    """Decode an event, a list of events, a response of `POST …/runs`, or AG-UI events. Raises `InvalidInput`."""
    if isinstance(payload, dict) and isinstance(payload.get("events"), list):
        payload = payload["events"]
    events = payload if isinstance(payload, list) else [payload]
    if not all(isinstance(event, dict) for event in events):
        raise InvalidInput("These are not events of trpc-agent-go. Send the response of its server.")
    objects = [event for event in events if isinstance(event, dict)]
    return [decode(event) for event in (fold(objects) if any(map(is_agui, objects)) else objects)]


def build_tree(events: Iterable[GoEvent]) -> dict[str, list[GoInvocation]]:
    """Return the root invocations of each request, with their children. Events may come in any order.

    What a graph's node says itself carries no request: it belongs to that of its invocation.
    """
    invocations: dict[tuple[str, str], GoInvocation] = {}
    events = list(events)
    requests = {event.invocation_id: event.request_id for event in events if event.request_id}
    for event in events:
        key = (event.request_id or requests.get(event.invocation_id, ""), event.invocation_id)
        invocation = invocations.setdefault(key, GoInvocation(event.invocation_id))
        invocation.parent_id = invocation.parent_id or event.parent_invocation_id
        invocation.trigger_id = invocation.trigger_id or event.trigger_id
        invocation.author = invocation.author or event.author
        invocation.branch = invocation.branch or event.branch
        invocation.events.append(event)
    for invocation in invocations.values():
        invocation.events.sort(key=lambda event: event.at_ms or 0)
    # Without a parent, or in a cycle, it is a root.
    roots: dict[str, list[GoInvocation]] = {}
    for (request_id, _), invocation in invocations.items():
        parent = ancestor = invocations.get((request_id, invocation.parent_id))
        ancestors: set[str] = set()
        while ancestor is not None and ancestor.id not in ancestors:
            ancestors.add(ancestor.id)
            ancestor = invocations.get((request_id, ancestor.parent_id))
        if parent is None or invocation.id in ancestors:
            roots.setdefault(request_id, []).append(invocation)
        else:
            parent.children.append(invocation)
    return roots


def find_suspensions(events: Sequence[GoEvent]) -> list[GoSuspension]:
    """Return what waits, in order: graph interrupts, external and long-running calls, permissions."""
    messages = [choice.inner("message") for event in events for choice in event.choices]
    answered = {message.text("tool_id") for message in messages if message.text("role") == "tool"} - {""}
    ended = {event.request_id for event in events if event.completes_run}
    interrupts = _find_outermost(events)
    waiting: dict[tuple[str, str], GoSuspension] = {}
    for place, event in enumerate(events):
        here = [interrupts[place]] if place in interrupts else []
        for suspension in (*here, *_find_permissions(event)):
            key = f"{suspension.checkpoint_id}/{suspension.key or suspension.name}"
            waiting.setdefault((suspension.mechanism, key), suspension)
        for call in event.calls:
            mechanism: Mechanism = "long_running_tool" if call.id in event.long_running else "external_tool"
            external = event.request_id in ended and call.id not in answered and not event.partial
            if external or mechanism == "long_running_tool":
                where = (event.request_id, event.invocation_id)
                waiting.setdefault((mechanism, call.id), GoSuspension(mechanism, *where, call.id, call.name, call.args))
    return list(waiting.values())


def write_tool_results(suspensions: Sequence[GoSuspension], results: Mapping[str, str]) -> list[JsonObject]:
    """Return the `role: tool` messages at the end of the next AG-UI request. Raises `InvalidInput` if one has none."""
    waiting = {entry.key: entry for entry in suspensions if entry.mechanism == "external_tool"}
    _check_complete(set(waiting), set(results))
    return [
        {"id": f"result-{key}", "role": "tool", "toolCallId": key, "name": suspension.name, "content": results[key]}
        for key, suspension in waiting.items()
    ]


def write_graph_resume(suspensions: Sequence[GoSuspension], values: Mapping[str, JsonValue]) -> JsonObject:
    """Return the `state` of an AG-UI request that resumes a graph from its checkpoint. Raises `InvalidInput`.

    A breakpoint needs no value. The server merges an object into the state of the run, which resumes the checkpoint; a
    state resolver must turn `resume_map` into a command, since only a `graph.Command` brings values.
    """
    waiting = {entry.key: entry for entry in suspensions if entry.mechanism == "graph_interrupt"}
    breakpoints = {key for key in waiting if key.startswith(_BREAKPOINTS)}
    _check_complete(set(waiting), set(values) | breakpoints)
    checkpoints = {(entry.lineage_id, entry.checkpoint_id, entry.checkpoint_ns) for entry in waiting.values()}
    if len(checkpoints) != 1:
        raise InvalidInput(f"The interrupts belong to {len(checkpoints)} checkpoints. Resume one checkpoint at a time.")
    ((lineage_id, checkpoint_id, namespace),) = checkpoints
    state: JsonObject = {"lineage_id": lineage_id, "checkpoint_id": checkpoint_id, "resume_map": dict(values)}
    return {**state, "checkpoint_ns": namespace} if namespace else state


def write_user_reply(suspension: GoSuspension, text: str) -> JsonObject:
    """Return the user message with the result of a long-running call. Only its text holds the call's id."""
    return {"role": "user", "content": f"The result of {suspension.name} ({suspension.key}): {text}"}


def _check_complete(waiting: set[str], given: set[str]) -> None:
    if not waiting:
        raise InvalidInput("No suspension waits in this way. Check the mechanism of each one.")
    if waiting != given:
        missing, foreign = sorted(waiting - given), sorted(given - waiting)
        raise InvalidInput(
            "One request must answer everything that waits. "
            f"Missing: {', '.join(missing) or 'none'}. Unknown: {', '.join(foreign) or 'none'}."
        )


def _read_bytes(value: JsonValue) -> JsonValue:
    """Decode Go bytes: base64, with JSON or text inside."""
    if not isinstance(value, str):
        return value
    try:
        text = base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return value
    return read_json(text)


def _find_outermost(events: Sequence[GoEvent]) -> dict[int, GoSuspension]:
    """Return the interrupts by the places of their events; only the outermost graph can be resumed."""
    parents = {
        (event.request_id, event.invocation_id): event.parent_invocation_id
        for event in events
        if event.parent_invocation_id
    }
    interrupts = {
        place: interrupt for place, event in enumerate(events) if (interrupt := _find_interrupt(event)) is not None
    }
    interrupted = {(interrupt.request_id, interrupt.invocation_id) for interrupt in interrupts.values()}
    outer: dict[int, GoSuspension] = {}
    inner: dict[tuple[str, str, str], tuple[int, GoSuspension]] = {}
    for place, interrupt in interrupts.items():
        above = [name for name in _list_ancestors(interrupt, parents) if (interrupt.request_id, name) in interrupted]
        if not above:
            outer[place] = interrupt
        else:
            key = (interrupt.request_id, above[-1], interrupt.key)
            inner[key] = max(inner.get(key, (0, interrupt)), (len(above), interrupt), key=lambda entry: entry[0])
    for place, interrupt in outer.items():
        _, deep = inner.get((interrupt.request_id, interrupt.invocation_id, interrupt.key), (0, interrupt))
        outer[place] = replace(interrupt, name=deep.name, invocation_id=deep.invocation_id, prompt=deep.prompt)
    return outer


def _list_ancestors(interrupt: GoSuspension, parents: Mapping[tuple[str, str], str]) -> list[str]:
    """Return the invocations above an interrupt, the nearest first. A cycle has no outermost one, so it has none."""
    above: dict[str, None] = {}
    parent = parents.get((interrupt.request_id, interrupt.invocation_id), "")
    while parent and parent not in above:
        above[parent] = None
        parent = parents.get((interrupt.request_id, parent), "")
    return [*above] if not parent else []


def _find_interrupt(event: GoEvent) -> GoSuspension | None:
    meta = Fields(event.state.get(PREGEL))
    if meta.text("nodeID"):
        return GoSuspension(
            "graph_interrupt",
            event.request_id,
            event.invocation_id,
            meta.text("interruptKey") or meta.text("nodeID"),
            meta.text("nodeID"),
            meta.value("interruptValue"),
            meta.text("lineageId"),
            meta.text("checkpointId"),
            meta.text("checkpointNs"),
        )
    return None


def _find_permissions(event: GoEvent) -> Iterable[GoSuspension]:
    """A permission does not block its run: the model is notified and continues."""
    for choice in event.choices:
        message = choice.inner("message")
        content = Fields(read_json(message.value("content")))
        if message.text("role") == "tool" and content.text("status") == "approval_required":
            tool = content.text("tool") or message.text("tool_name")
            name = tool or message.text("tool_id")
            yield GoSuspension("permission", event.request_id, event.invocation_id, "", name, content.text("reason"))
