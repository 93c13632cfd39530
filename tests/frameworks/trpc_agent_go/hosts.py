"""The program between a server of trpc-agent-go and a desk: it reports events, asks, and resumes what was decided."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx

from sayso import Client
from sayso.core.clock import new_id
from sayso.timeline.external_events import fit_events
from sayso.timeline.trpc_states import GoSuspension, decode_all, find_suspensions, write_graph_resume
from sayso.wire.suspensions import SuspensionView
from tests.frameworks.trpc_agent_go.servers import PATIENCE_S

Event = dict[str, Any]


@dataclass
class Host:
    """One conversation with an agent of the server, over its plain events or over AG-UI."""

    url: str
    door: str
    agent: str
    desk: Client
    thread: str = field(default_factory=lambda: new_id("thread"))
    events: list[Event] = field(default_factory=list)
    reported: int = 0

    def start(self, *calls: tuple[str, dict[str, Any]]) -> SuspensionView | None:
        """Let the model call these tools, and ask the desk about what the run waits for."""
        return self._ask(self.send(json.dumps(calls)))

    def resume(self, waits: SuspensionView) -> SuspensionView | None:
        """Wait for the decision, redeem its permit, and resume the run; return what it waits for next."""
        decided = self.desk.wait(waits.id, PATIENCE_S)
        (item,) = decided.items
        assert item.outcome is not None, decided
        waiting = GoSuspension(**decided.run.claimed_context["trpc"])  # type: ignore[arg-type]
        holder = new_id("holder")
        value: dict[str, Any] = {"action": "deny", "message": item.outcome.message}
        if item.outcome.may_run:
            value = {"action": "approve", "args": self.desk.redeem(waits.id, item.item_id, holder).args}
        events = self.send("go on", write_graph_resume([waiting], {waiting.key: value}))
        if item.outcome.may_run:
            self.desk.report_outcome(waits.id, item.item_id, holder, output=read_text(events))
        self.report(waits.run.id)
        return self._ask(events)

    def send(self, text: str, state: Any = None, **changes: Any) -> list[Event]:
        """Send an input and return the events of its request."""
        given = {
            "threadId": self.thread,
            "runId": new_id("run"),
            "messages": [{"id": new_id("m"), "role": "user", "content": text}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
            "state": state,
            **changes,
        }
        events = []
        with httpx.stream("POST", f"{self.url}/{self.door}/{self.agent}", json=given, timeout=PATIENCE_S) as response:
            assert response.status_code == 200, response.read()
            for line in response.iter_lines():
                if line.startswith(("{", "data:")):
                    events.append(json.loads(line.removeprefix("data:")))
        self.events += events
        return events

    def report(self, run_id: str) -> None:
        """Send the desk the events that it has not."""
        rows = list(fit_events(self.events[self.reported :]))
        if rows:
            self.desk.report_events(run_id, "trpc_agent_go", rows, first_seq=self.reported + 1)
        self.reported += len(rows)

    def _ask(self, events: Sequence[Event]) -> SuspensionView | None:
        waiting = find_suspensions(decode_all(list(events)))
        if not waiting:
            return None
        (one,) = waiting
        prompt: Any = one.prompt
        call = {
            "tool": prompt["tool"],
            "args": prompt["args"],
            "call_id": one.key,
            "definition": {"description": "Pays."},
        }
        body: Any = {"mode": "poll", "thread_id": self.thread, "calls": [call], "context": {"trpc": asdict(one)}}
        waits = self.desk.suspend(body, f"{one.checkpoint_id}/{one.key}")
        self.report(waits.run.id)
        return waits


def read_text(events: Sequence[Event]) -> str:
    """Return what the model said, in events of either kind."""
    deltas = [event["delta"] for event in events if event.get("type") == "TEXT_MESSAGE_CONTENT"]
    choices = [choice for event in events for choice in event.get("choices") or ()]
    return "".join([*deltas, *(choice["delta"].get("content", "") for choice in choices)])
