"""Read trpc-agent-go's events off the wire, find where a run waits, and write what makes it go on.

Plain functions: nothing here calls a server. An answer that was given to `POST …/runs`, a list of events and a single
event are all read; order does not matter, the tree is built from the ids alone.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.formats.external_events import Fields, read_json, read_moment

PREGEL, NODE_CUSTOM = "_pregel_metadata", "_node_custom_metadata"
TRANSFER, CODE, CODE_RESULT = "transfer", "code_execution_code", "code_execution_result"

_BREAKPOINTS = ("static_interrupt_before:", "static_interrupt_after:")
_COMPLETION, _TOOL_RESPONSE = "runner.completion", "tool.response"


@dataclass(frozen=True)
class GoCall:
    """One tool call the model asked for; arguments that are no JSON stay the text they are."""

    id: str
    name: str
    args: JsonValue


@dataclass(frozen=True)
class GoEvent:
    """One event, decoded: ids, what it says, and its state changes as the JSON or text that was in them."""

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

    @property
    def completes_run(self) -> bool:
        """Whether the whole run ends with it; `done` by itself only ends one response."""
        return self.object == _COMPLETION and self.done


Mechanism = Literal["graph_interrupt", "external_tool", "long_running_tool", "permission"]


@dataclass(frozen=True)
class GoSuspension:
    """One thing a run waits for. What has no `key`, such as a permission, cannot be answered by a resume body."""

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
    """One invocation with those that it began; two calls of one sub-agent are told apart by what triggered them."""

    id: str
    parent_id: str = ""
    trigger_id: str = ""
    author: str = ""
    branch: str = ""
    events: list[GoEvent] = field(default_factory=list)
    children: list["GoInvocation"] = field(default_factory=list)


def decode(event: JsonObject) -> GoEvent:
    """Return one event. What is malformed inside is left out; the event itself never is."""
    fields = Fields(event)
    nested = fields.inner("response")
    choices = tuple(fields.rows("choices"))
    branch = fields.word("branch")
    return GoEvent(
        id=fields.word("id"),
        object=fields.word("object"),
        request_id=fields.word("requestID"),
        invocation_id=fields.word("invocationId"),
        parent_invocation_id=fields.word("parentInvocationId"),
        trigger_id=fields.inner("parentMetadata").word("triggerId"),
        author=fields.word("author"),
        branch=branch,
        filter_key=fields.word("filterKey") or (branch if not fields.count("version") else ""),
        tags=tuple(tag.strip() for tag in fields.word("tag").split(";") if tag.strip()),
        at_ms=read_moment(fields.word("timestamp")),
        response_id=nested.word("id"),
        done=fields.true("done"),
        partial=fields.true("is_partial"),
        error=_read_error(fields),
        calls=tuple(_read_calls(choices)),
        long_running=_read_set(fields.value("longRunningToolIDs")),
        state={key: _read_bytes(value) for key, value in fields.inner("stateDelta").raw.items()},
        choices=choices,
    )


def decode_all(told: JsonValue) -> list[GoEvent]:
    """Return the events of one event, of a list, or of the answer of `POST …/runs`; raises `InvalidInput`."""
    if isinstance(told, dict) and isinstance(told.get("events"), list):
        told = told["events"]
    events = told if isinstance(told, list) else [told]
    if not all(isinstance(one, dict) for one in events):
        raise InvalidInput("This is neither an event nor a list of events of trpc-agent-go; send what its server sent.")
    return [decode(one) for one in events if isinstance(one, dict)]


def build_tree(events: Iterable[GoEvent]) -> dict[str, list[GoInvocation]]:
    """Return the root invocations of every request, each with all below it; whatever the order the events came in."""
    found: dict[tuple[str, str], GoInvocation] = {}
    for event in events:
        place = (event.request_id, event.invocation_id)
        one = found.setdefault(place, GoInvocation(event.invocation_id))
        one.parent_id = one.parent_id or event.parent_invocation_id
        one.trigger_id = one.trigger_id or event.trigger_id
        one.author = one.author or event.author
        one.branch = one.branch or event.branch
        one.events.append(event)
    for one in found.values():
        one.events.sort(key=lambda event: event.at_ms or 0)
    return _hang(found)


def _hang(found: Mapping[tuple[str, str], GoInvocation]) -> dict[str, list[GoInvocation]]:
    """Hang each invocation below its parent; one whose parent is not there, or is below it, is a root."""
    roots: dict[str, list[GoInvocation]] = {}
    for (request_id, _), one in found.items():
        parent = found.get((request_id, one.parent_id))
        if parent is None or _is_above(found, request_id, one, parent):
            roots.setdefault(request_id, []).append(one)
        else:
            parent.children.append(one)
    return roots


def _is_above(
    found: Mapping[tuple[str, str], GoInvocation], request_id: str, one: GoInvocation, parent: GoInvocation
) -> bool:
    """Whether going up from `parent` leads back to `one`."""
    seen: set[str] = set()
    up: GoInvocation | None = parent
    while up is not None and up.id not in seen:
        if up is one:
            return True
        seen.add(up.id)
        up = found.get((request_id, up.parent_id))
    return False


def find_suspensions(events: Sequence[GoEvent]) -> list[GoSuspension]:
    """Return what waits for somebody, in order: interrupts of graphs, calls that were not run here, permissions."""
    answered = {tool_id for event in events for tool_id in _answers(event)}
    ended = {event.request_id for event in events if event.completes_run}
    pauses: dict[tuple[str, str], GoSuspension] = {}
    for event in events:
        for pause in (*_find_interrupts(event), *_find_permissions(event)):
            pauses.setdefault((pause.mechanism, f"{pause.checkpoint_id}/{pause.key or pause.name}"), pause)
        for call in event.calls:
            mechanism = _wait_of(event, call, answered, ended)
            if mechanism is not None:
                pause = GoSuspension(mechanism, event.request_id, event.invocation_id, call.id, call.name, call.args)
                pauses.setdefault((mechanism, call.id), pause)
    return list(pauses.values())


def _wait_of(event: GoEvent, call: GoCall, answered: set[str], ended: set[str]) -> Mechanism | None:
    if call.id in event.long_running:
        return "long_running_tool"
    if event.request_id in ended and call.id not in answered and not event.partial:
        return "external_tool"
    return None


def write_tool_results(pauses: Sequence[GoSuspension], results: Mapping[str, str]) -> list[JsonObject]:
    """Return the `role: tool` messages that end the next request's list; raises `InvalidInput` unless all are answered.

    Refusals are results, too: the words in which the model is told that the call was not run.
    """
    waiting = {pause.key: pause for pause in pauses if pause.mechanism == "external_tool"}
    _check_complete(set(waiting), set(results))
    return [
        {"role": "tool", "tool_id": key, "tool_name": pause.name, "content": results[key]}
        for key, pause in waiting.items()
    ]


def write_graph_resume(pauses: Sequence[GoSuspension], values: Mapping[str, JsonValue]) -> JsonObject:
    """Return the `state` of an AG-UI request that resumes a graph from its checkpoint; raises `InvalidInput`.

    A breakpoint needs no value. The server turns `resume_map` into a command with a state resolver of its own; as plain
    state it does nothing.
    """
    waiting = {pause.key: pause for pause in pauses if pause.mechanism == "graph_interrupt"}
    stops = {key for key in waiting if key.startswith(_BREAKPOINTS)}
    _check_complete(set(waiting), set(values) | stops)
    points = {(one.lineage_id, one.checkpoint_id, one.checkpoint_ns) for one in waiting.values()}
    if len(points) != 1:
        raise InvalidInput(f"The interrupts are of {len(points)} checkpoints; resume one checkpoint at a time.")
    ((lineage_id, checkpoint_id, namespace),) = points
    state: JsonObject = {"lineage_id": lineage_id, "checkpoint_id": checkpoint_id, "resume_map": dict(values)}
    return {**state, "checkpoint_ns": namespace} if namespace else state


def write_user_reply(pause: GoSuspension, text: str) -> JsonObject:
    """Return the user's message that tells of a long-running call: there is no other tie to it than its id's text."""
    return {"role": "user", "content": f"The result of {pause.name} ({pause.key}): {text}"}


def _check_complete(waiting: set[str], given: set[str]) -> None:
    if not waiting:
        raise InvalidInput("Nothing here waits in that way; look at the mechanism of each pause.")
    if waiting != given:
        missing, foreign = sorted(waiting - given), sorted(given - waiting)
        raise InvalidInput(
            "Everything that waits is answered in one request: "
            f"missing are {', '.join(missing) or 'none'}, not asked were {', '.join(foreign) or 'none'}."
        )


def _read_error(fields: Fields) -> str:
    error = fields.inner("error")
    words = error.word("message") or error.word("type")
    return words or ("unknown error" if fields.word("object") == "error" or error.raw else "")


def _read_calls(choices: Sequence[Fields]) -> Iterable[GoCall]:
    for choice in choices:
        for one in choice.inner("message").rows("tool_calls"):
            function = one.inner("function")
            yield GoCall(one.word("id"), function.word("name"), read_json(function.value("arguments")))


def _read_set(value: JsonValue) -> frozenset[str]:
    """A Go set is an object with empty values; a list is taken, too."""
    if isinstance(value, dict):
        return frozenset(value)
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()


def _read_bytes(value: JsonValue) -> JsonValue:
    """Go's bytes are base64 on the wire, and mostly JSON inside; what is neither stays the text it is."""
    if not isinstance(value, str):
        return value
    try:
        text = base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return value
    return read_json(text)


def _answers(event: GoEvent) -> Iterable[str]:
    for choice in event.choices:
        message = choice.inner("message")
        if message.word("role") == "tool" and message.word("tool_id"):
            yield message.word("tool_id")


def _find_interrupts(event: GoEvent) -> Iterable[GoSuspension]:
    meta = Fields(event.state.get(PREGEL))
    if meta.word("nodeID"):
        yield GoSuspension(
            "graph_interrupt",
            event.request_id,
            event.invocation_id,
            meta.word("interruptKey") or meta.word("nodeID"),
            meta.word("nodeID"),
            meta.value("interruptValue"),
            meta.word("lineageId"),
            meta.word("checkpointId"),
            meta.word("checkpointNs"),
        )


def _find_permissions(event: GoEvent) -> Iterable[GoSuspension]:
    """A permission asked for does not hold the run: the model was told so, and went on."""
    for choice in event.choices:
        message = choice.inner("message")
        said = Fields(read_json(message.value("content")))
        if message.word("role") == "tool" and said.word("status") == "approval_required":
            tool = said.word("tool") or message.word("tool_name")
            name = tool or message.word("tool_id")
            yield GoSuspension("permission", event.request_id, event.invocation_id, "", name, said.word("reason"))
