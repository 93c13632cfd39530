"""Write a run's trail as plain text, one readable line an event."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sayso.events import EventType, TrailEntry

Data = Mapping[str, Any]

LONGEST_LINE = 150


def render_timeline(trail: Iterable[TrailEntry]) -> Iterator[str]:
    """Yield a line for each entry: seconds since the first, the kind of event, and what it says."""
    began_at_ms: int | None = None
    for entry in trail:
        began_at_ms = entry.at_ms if began_at_ms is None else began_at_ms
        line = f"{(entry.at_ms - began_at_ms) / 1000:8.3f} s  {entry.type:<20}  {describe(entry)}".rstrip()
        yield line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"


def describe(entry: TrailEntry) -> str:
    """Say in a few words what an event tells; nothing for a kind that has only a name."""
    say = _SAYINGS.get(entry.type)
    return " ".join(say(entry.data).split()) if say else ""


def _paused(data: Data) -> str:
    items = data["payload"]["items"]
    return "waits for " + ", ".join(f"{item['kind']} of {item['tool_name']} ({item['item_id']})" for item in items)


def _resumed(data: Data) -> str:
    verdicts = ", ".join(f"{item_id} {verdict}" for item_id, verdict in data["verdicts"].items())
    return f"{'approved' if data['approved'] else 'not everything approved'}: {verdicts}"


def _completed(data: Data) -> str:
    if not data["success"]:
        return f"{data['tool_name']} did not run or failed: {data['error']}"
    return f"{data['tool_name']} -> {data['output']}"


def _recorded(data: Data) -> str:
    edited = " with other arguments" if data["edited"] else ""
    reason = f": {data['message']}" if data["message"] else ""
    return f"{data['by']['id']} says {data['action']}{edited} on {data['item_id']}{reason}"


def _ended(data: Data) -> str:
    return str(data["error"] or data["result"])


_SAYINGS: dict[str, Callable[[Data], str]] = {
    EventType.TOOL_BATCH_STARTED: lambda data: f"{data['tool_call_count']} calls: {', '.join(data['tool_names'])}",
    EventType.POLICY_DECISION: lambda data: f"{data['tool_name']}: {data['action']}, for: {data['reason']}",
    EventType.RUN_PAUSED: _paused,
    EventType.RUN_RESUMED: _resumed,
    EventType.TOOL_COMPLETED: _completed,
    EventType.WARNING: lambda data: str(data["message"]),
    EventType.RUN_STARTED: lambda data: f"agent {data['agent']}, asked by {data['owner']}",
    EventType.LLM_COMPLETED: lambda data: (
        f"{data['tool_call_count']} calls asked for" if data["tool_call_count"] else "text"
    ),
    EventType.TOOL_BATCH_COMPLETED: lambda data: (
        f"{data['failure_count']} of {data['tool_call_count']} did not succeed"
    ),
    EventType.DECISION_RECORDED: _recorded,
    EventType.DECIDED: lambda data: "nothing is open any more",
    EventType.TIMED_OUT: lambda data: f"nobody decided on {data['item_id']}; the fallback says {data['fallback']}",
    EventType.RUN_RESUMING: lambda data: f"attempt {data['attempt']} by worker {data['worker']}",
    EventType.PERMIT_REDEEMED: lambda data: f"the leave for {data['item_id']} is spent",
    EventType.RUN_POSTPONED: lambda data: f"attempt {data['attempt']}: {data['error']}",
    EventType.RUN_COMPLETED: _ended,
    EventType.RUN_DEGRADED: _ended,
    EventType.RUN_FAILED: _ended,
}
