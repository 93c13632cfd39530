"""AG-UI clients, and the agent and the proxy that they talk to."""

import json
import subprocess
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from demo.stacks import find_ports
from launch.stops import wait_until
from sayso.core.clock import new_id
from service.core.settings import CHECKOUT
from tests.frameworks.kinds import AGUI, AGUI_AGENTS, find_python
from tests.frameworks.mcp.desks import PATIENCE_S, Desk

PYTHON = str(find_python(AGUI))

Event = dict[str, Any]


@dataclass
class Setup:
    """A desk, an agent and a proxy, each a process that can be killed and started again."""

    desk: Desk
    kind: str
    environ: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    ports: tuple[int, int] = field(default_factory=lambda: ((port := find_ports()), port + 1))
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.start("agent")
        self.start("proxy")
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.running):
            self.kill(name)

    def start(self, name: str) -> None:
        """Start the agent or the proxy and wait until it answers."""
        agent, port = self.ports
        python = find_python(f"agui_{self.kind}" if f"agui_{self.kind}" in AGUI_AGENTS else AGUI)
        command = [str(python), "-m", "tests.frameworks.agui.servers", self.kind, str(agent)]
        if name == "proxy":
            command = [PYTHON, "-m", "sayso", "agui", "--url", self.agent_url, "--port", str(port), *self.options]
        self.running[name] = subprocess.Popen(command, cwd=CHECKOUT, env=self.desk.environ(**self.environ))
        assert wait_until(lambda: answers(port if name == "proxy" else agent), PATIENCE_S)

    def kill(self, name: str) -> None:
        """Kill the agent or the proxy."""
        child = self.running.pop(name)
        child.kill()
        child.wait()

    @property
    def agent_url(self) -> str:
        """The address of the agent behind the proxy."""
        return f"http://127.0.0.1:{self.ports[0]}/"

    def chat(self) -> "Chat":
        """Return a client with a thread of its own."""
        return Chat(f"http://127.0.0.1:{self.ports[1]}/", new_id("thread"))

    def ask(self, *payments: tuple[str, int]) -> "Chat":
        """Return a client that has asked for payments."""
        chat = self.chat()
        assert read_reasons(chat.ask(*payments)) == ["sayso:waiting"] * len(payments)
        return chat


def answers(port: int) -> bool:
    """Return whether a server answers at a port."""
    try:
        httpx.get(f"http://127.0.0.1:{port}/")
    except httpx.TransportError:
        return False
    return True


@dataclass
class Chat:
    """A client of AG-UI: it keeps the messages of its thread, and the interrupts to resume."""

    url: str
    thread: str
    messages: list[Any] = field(default_factory=list)
    interrupts: list[Any] = field(default_factory=list)
    text: str = ""

    def ask(self, *payments: tuple[str, int]) -> list[Event]:
        """Ask for payments, and return the events of the run."""
        self.messages.append({"id": new_id("m"), "role": "user", "content": json.dumps(payments)})
        return self.send()

    def resume(self, payload: Any = None, status: str = "resolved", **changes: Any) -> list[Event]:
        """Resume the run with all its interrupts."""
        entry = {"status": status, **({"payload": payload} if payload is not None else {})}
        return self.send(
            **{"resume": [{"interruptId": interrupt["id"], **entry} for interrupt in self.interrupts], **changes}
        )

    def send(self, **changes: Any) -> list[Event]:
        """Send an input, note what its events say, and return them."""
        run_input = {
            "threadId": self.thread,
            "runId": new_id("run"),
            "state": {},
            "messages": self.messages,
            "tools": [],
            "context": [],
            "forwardedProps": {},
            **changes,
        }
        events = []
        with httpx.stream("POST", self.url, json=run_input, timeout=PATIENCE_S) as response:
            for line in response.iter_lines():
                if line.startswith("data:"):
                    events.append(json.loads(line[5:]))
        for event in events:
            self._note(event)
        return events

    def _note(self, event: Event) -> None:
        match event["type"]:
            case "MESSAGES_SNAPSHOT":
                self.messages = event["messages"]
                self.text = str(self.messages[-1].get("content"))
            case "TOOL_CALL_START" if event["toolCallId"] not in json.dumps(self.messages):
                function = {"name": event["toolCallName"], "arguments": ""}
                call = {"id": event["toolCallId"], "type": "function", "function": function}
                if self.messages[-1]["role"] != "assistant":
                    self.messages.append({"id": new_id("m"), "role": "assistant", "toolCalls": []})
                self.messages[-1]["toolCalls"].append(call)
            case "TOOL_CALL_ARGS":
                for call in self.messages[-1].get("toolCalls", []):
                    if call["id"] == event["toolCallId"]:
                        call["function"]["arguments"] += event["delta"]
            case "TEXT_MESSAGE_CONTENT":
                self.text += event["delta"]
            case "RUN_FINISHED" if (event.get("outcome") or {}).get("type") == "interrupt":
                self.interrupts = event["outcome"]["interrupts"]


def read_reasons(events: list[Event]) -> list[str]:
    """Return the reasons of the interrupts with which a run has finished."""
    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    outcome = events[-1].get("outcome") or {}
    return [interrupt["reason"] for interrupt in outcome.get("interrupts", [])]


def read_error(events: list[Event]) -> str:
    """Return the error with which a run has ended."""
    assert events[-1]["type"] == "RUN_ERROR", events
    return str(events[-1]["message"])
