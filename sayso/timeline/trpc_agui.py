"""Read the AG-UI events of trpc-agent-go's server as events of its own format.

The stream has no tree of invocations. A nested interrupt comes once for each level, the outermost last, all with one
key; a server with `WithGraphNodeInterruptActivityTopLevelOnly` sends the outermost alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.timeline.external_events import Fields

INTERRUPT_ACTIVITY = "graph.node.interrupt"
_INTERRUPT, _RESUME = "/interrupt", "/resume"


def is_agui(event: JsonObject) -> bool:
    """Return whether this is an event of AG-UI: its `type` is in capitals, and it has no `object`."""
    kind = event.get("type")
    return isinstance(kind, str) and kind.isupper() and "object" not in event


def read_interrupt(event: JsonObject) -> JsonObject | None:
    """Return the graph's metadata of the interrupt that an activity adds, or None."""
    value = _find_patch(Fields(event), _INTERRUPT)
    if not value.text("nodeId"):
        return None
    return {
        "nodeID": value.text("nodeId"),
        "interruptKey": value.text("key"),
        "interruptValue": value.value("prompt"),
        "lineageId": value.text("lineageId"),
        "checkpointId": value.text("checkpointId"),
    }


def read_custom(event: JsonObject) -> Fields:
    """Return the graph's metadata of what a node says itself."""
    fields = Fields(event)
    value = fields.inner("value")
    category = "progress" if "progress" in value.raw else "text" if "content" in value.raw else "custom"
    return Fields(
        {"category": category, "eventType": fields.text("name"), "message": value.value("content"), **value.raw}
    )


def fold(events: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the events of a stream as events of trpc-agent-go, with its latest interrupts that were not resumed."""
    stream = _Stream()
    for event in events:
        stream.add(Fields(event), event)
    return stream.list_events()


@dataclass
class _Stream:
    run_id: str = ""
    _calls: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    _interrupts: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    _events: list[JsonObject] = field(default_factory=list)

    def add(self, fields: Fields, event: JsonObject) -> None:
        kind, call_id = fields.text("type"), fields.text("toolCallId")
        if kind == "RUN_STARTED":
            self.run_id = fields.text("runId")
        elif kind == "TOOL_CALL_START":
            self._calls[call_id] = (fields.text("toolCallName"), [])
        elif kind == "TOOL_CALL_ARGS" and call_id in self._calls:
            self._calls[call_id][1].append(fields.text("delta"))
        elif kind == "TOOL_CALL_END" and call_id in self._calls:
            name, args = self._calls.pop(call_id)
            function: JsonObject = {"name": name, "arguments": "".join(args)}
            calls: list[JsonValue] = [{"id": call_id, "function": function}]
            self._emit("chat.completion", {"role": "assistant", "content": "", "tool_calls": calls})
        elif kind == "TOOL_CALL_RESULT":
            message: JsonObject = {"role": "tool", "tool_id": call_id, "content": fields.value("content")}
            self._emit("tool.response", message)
        elif kind == "RUN_FINISHED":
            self._emit("runner.completion", done=True)
        elif kind == "RUN_ERROR":
            self._emit("error", error={"message": fields.text("message") or "unknown error"}, done=True)
        elif fields.text("activityType") == INTERRUPT_ACTIVITY:
            if resumed := _find_patch(fields, _RESUME).text("checkpointId"):
                self._interrupts = {
                    key: meta for key, meta in self._interrupts.items() if meta["checkpointId"] != resumed
                }
            if (meta := read_interrupt(event)) is not None:
                key = (self.run_id, str(meta["interruptKey"] or meta["nodeID"]))
                inner = self._interrupts.pop(key, None)
                self._interrupts[key] = meta if inner is None else {**meta, "nodeID": inner["nodeID"]}

    def list_events(self) -> list[JsonObject]:
        waiting: list[JsonObject] = [
            {**self._base("graph.pregel.step", run_id), "stateDelta": {"_pregel_metadata": meta}}
            for (run_id, _), meta in self._interrupts.items()
        ]
        return [*waiting, *self._events]

    def _emit(self, kind: str, message: JsonObject | None = None, **fields: JsonValue) -> None:
        choices: list[JsonValue] = [{"message": message}] if message is not None else []
        self._events.append({**self._base(kind, self.run_id), "choices": choices, **fields})

    def _base(self, kind: str, run_id: str) -> JsonObject:
        return {"object": kind, "requestID": run_id, "invocationId": run_id}


def _find_patch(fields: Fields, path: str) -> Fields:
    rows = (patch for patch in fields.rows("patch") if patch.text("op") in ("add", "replace"))
    return next((patch.inner("value") for patch in rows if patch.text("path") == path), Fields(None))
