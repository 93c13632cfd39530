"""Tests of the MCP proxy between the official client and server, each in its own process."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from demo.stacks import Stack, find_ports, neutral_environ, running_stack
from launch.waits import wait_until
from sayso import Client
from sayso.client.responses import Suspension
from service.settings import CHECKOUT
from tests.frameworks.kinds import ENVIRONMENTS, MCP

PATIENCE_S = 60
PYTHON = str(ENVIRONMENTS / MCP / "bin" / "python")
SERVER = [PYTHON, "-m", "tests.frameworks.mcp.servers"]
BY_HTTP = "--url"
pytestmark = pytest.mark.timeout(240)


@dataclass
class Room:
    """A running Sayso, a reviewer, and the log of the server behind the proxy."""

    stack: Stack
    reviewer: Client
    home: Path

    def effects(self) -> list[dict[str, Any]]:
        """Return the server's effects in this test."""
        file = self.home / "effects.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def waiting(self) -> list[Suspension]:
        """Return the pending suspensions."""
        return list(self.reviewer.waiting().suspensions)

    def await_question(self) -> Suspension:
        """Wait for the only pending suspension and return it."""
        assert wait_until(lambda: len(self.waiting()) == 1, PATIENCE_S), self.waiting()
        return self.waiting()[0]

    def decide(self, action: str, **given: Any) -> Suspension:
        """Decide the only pending item."""
        waits = self.await_question()
        self.reviewer.decide(waits.id, waits.items[0], action, **given)
        return waits

    def environ(self, **more: str) -> dict[str, str]:
        """Return the environment of a proxy and its server."""
        desk = {"SAYSO_URL": self.stack.url, "SAYSO_KEY": self.stack.agent_key, "BOT_HOME": str(self.home)}
        return {**neutral_environ(), **desk, "PYTHONPATH": str(CHECKOUT), **more}


@dataclass
class Speaker:
    """An MCP client in its own process, connected to the proxy."""

    child: subprocess.Popen[str]
    lines: "Queue[dict[str, Any]]" = field(default_factory=Queue)
    results: list[str] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.lines.put(json.loads(line))

    def order(self, do: str, **what: Any) -> int:
        """Send an order to the client and return its number."""
        self.number += 1
        self.tell({"id": self.number, "do": do, **what})
        return self.number

    def tell(self, order: dict[str, Any]) -> None:
        """Send the client a line."""
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(order) + "\n")
        self.child.stdin.flush()

    def pay(self, to: str, amount: int = 7, do: str = "call", **more: Any) -> int:
        """Order a transfer."""
        return self.order(do, tool="send_money", args={"to": to, "amount": amount}, **more)

    def hear(self, number: int) -> Any:
        """Return the result of an order. Progress before it is collected."""
        while True:
            line = self.lines.get(timeout=PATIENCE_S)
            if "progress" in line:
                self.results.append(line["progress"])
            elif line["id"] == number:
                return line.get("result", line)

    def hear_error(self, number: int) -> str:
        """Return the error text for the model."""
        result = self.hear(number)
        assert result["is_error"] is True, result
        return str(result["content"][0]["text"])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Sayso with the rules of the frameworks' tests."""
    environ = {"SAYSO_POLICY": str(CHECKOUT / "tests" / "frameworks" / "policy.yaml"), "SAYSO_WORKERS": "1"}
    with running_stack(tmp_path_factory.mktemp("mcp"), environ) as stack:
        yield stack


@pytest.fixture
def room(running: Stack, tmp_path: Path) -> Iterator[Room]:
    """The same, without effects."""
    with Client(running.url, "-") as reviewer:
        reviewer.sign_in("admin", running.admin_password)
        yield Room(running, reviewer, tmp_path)
        for left in reviewer.waiting().suspensions:
            reviewer.cancel(left.run.id)


@contextmanager
def speaking(
    room: Room, *options: str, mode: str = "auto", server: list[str] | None = None, **environ: str
) -> Iterator[Speaker]:
    """Connect a client to a proxy with these options in front of this server."""
    behind = ["--", *SERVER] if server is None else server
    command = [PYTHON, "-m", "tests.frameworks.mcp.clients", mode, PYTHON, "-m", "sayso", "mcp", *options, *behind]
    child = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=room.environ(**environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        speaker = Speaker(child)
        speaker.hear(0)
        yield speaker
    finally:
        child.kill()
        child.wait()


@contextmanager
def served_by_http(room: Room) -> Iterator[list[str]]:
    """Run the server at a port."""
    port = find_ports()
    child = subprocess.Popen([*SERVER, str(port)], cwd=CHECKOUT, env=room.environ())
    try:
        probe = Client(f"http://127.0.0.1:{port}", "-", patience_s=PATIENCE_S)
        with probe, pytest.raises(Exception, match="is not a Sayso desk"):
            probe.waiting()
        yield [BY_HTTP, f"http://127.0.0.1:{port}/mcp"]
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_proxy_forwards_an_approved_call_once(room: Room, mode: str) -> None:
    with speaking(room, mode=mode) as speaker:
        number = speaker.pay("ann")
        waits = room.decide("approve")
        assert speaker.hear(number)["structured_content"] == {"sent": 7}
    (effect,) = room.effects()
    assert effect["args"] == {"to": "ann", "amount": 7}
    assert effect["meta"]["sayso/idempotency-key"].startswith(waits.id)
    assert effect["key"] is False, "the server is not given the desk's key"
    ended = room.reviewer.await_run(waits.run.id, PATIENCE_S)
    assert (ended.status, waits.items[0].tool.name) == ("completed", "send_money")


def test_proxy_holds_calls_of_an_http_server(room: Room) -> None:
    with served_by_http(room) as server, speaking(room, server=server) as speaker:
        number = speaker.pay("ann")
        room.decide("approve")
        assert speaker.hear(number)["structured_content"] == {"sent": 7}
    assert len(room.effects()) == 1


def test_proxy_passes_allowed_calls_and_other_requests(room: Room) -> None:
    with speaking(room) as speaker:
        allowed = speaker.hear(speaker.order("call", tool="look_up", args={"what": "weather"}))
        assert allowed["content"][0]["text"] == "look_up done"
        tools, resources, read = speaker.hear(speaker.order("look"))
    assert tools["tools"][0]["name"] == "look_up"
    assert resources["resources"][0]["uri"] == "note://one"
    assert read["contents"][0]["text"] == "a note"


def test_proxy_returns_a_denial_as_error(room: Room) -> None:
    with speaking(room, "--name", "bank") as speaker:
        number = speaker.pay("ann")
        waits = room.decide("deny", message="Ann was paid yesterday.")
        text = speaker.hear_error(number)
    assert text == "bank.send_money was denied by admin: Ann was paid yesterday. It did not run. Continue without it."
    assert (waits.items[0].tool.name, room.effects()) == ("bank.send_money", [])


def test_proxy_runs_edited_arguments_with_a_note(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("ann", 700)
        room.decide("approve", args={"to": "ann", "amount": 70})
        result = speaker.hear(number)
    assert "It ran with" in result["content"][0]["text"]
    assert '"amount":70' in result["content"][0]["text"]
    assert [effect["args"]["amount"] for effect in room.effects()] == [70]


def test_proxy_sends_progress_while_waiting(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("ann")
        line = speaker.lines.get(timeout=PATIENCE_S)
        assert line["progress"] == f"send_money waits for a reviewer at {room.stack.url}"
        room.decide("approve")
        assert speaker.hear(number)["is_error"] is False


def test_proxy_cancels_the_suspension_of_a_cancelled_call(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("ann")
        waits = room.await_question()
        speaker.tell({"id": number, "do": "cancel"})
        assert room.reviewer.await_run(waits.run.id, PATIENCE_S).status == "cancelled"
        assert speaker.hear(speaker.order("look"))
    assert room.effects() == []


def test_call_cancelled_while_running_is_in_doubt(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("slow")
        waits = room.decide("approve")
        while speaker.lines.get(timeout=PATIENCE_S)["progress"] != "half way":
            pass
        speaker.tell({"id": number, "do": "cancel"})
        assert speaker.hear(speaker.order("look"))
    (item,) = room.reviewer.find(waits.id).items
    assert item.permit is not None
    assert item.permit.report is None
    assert len(room.effects()) == 1


def test_call_is_in_doubt_if_the_server_dies(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("die")
        waits = room.decide("approve")
        assert "may have run" in speaker.hear_error(number)
        assert "did not run" in speaker.hear_error(speaker.pay("ann"))
    (item,) = room.reviewer.find(waits.id).items
    assert item.permit is not None
    assert item.permit.report is None


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_call_is_in_doubt_if_an_http_server_dies(room: Room, mode: str) -> None:
    with served_by_http(room) as server, speaking(room, mode=mode, server=server) as speaker:
        number = speaker.pay("die")
        waits = room.decide("approve")
        assert "may have run" in speaker.hear_error(number)
    (item,) = room.reviewer.find(waits.id).items
    assert item.permit is not None
    assert item.permit.report is None


def test_proxy_reports_a_failed_call(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("nobody")
        waits = room.decide("approve")
        assert speaker.hear_error(number) == "no such person"
    permit = room.reviewer.find(waits.id).items[0].permit
    assert permit is not None
    assert permit.report is not None
    assert (permit.report.success, permit.report.error) == (False, "no such person")


def test_call_is_in_doubt_after_an_ambiguous_error(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("broke")
        room.decide("approve")
        assert "returned no result of send_money (no money left). It may have run" in speaker.hear_error(number)


def test_proxy_names_the_place_of_invalid_arguments(room: Room) -> None:
    with speaking(room) as speaker:
        assert speaker.hear_error(speaker.pay("ann", 2**70)).startswith("$.args.amount is an integer beyond 2^53")
    assert room.effects() == []


def test_proxy_refuses_a_tool_with_an_invalid_name(room: Room) -> None:
    with speaking(room, "--name", "my bank") as speaker:
        results = speaker.hear_error(speaker.pay("ann"))
    assert results.startswith("The tool name 'my bank.send_money' has ' ' (U+0020) as character 3.")
    assert (room.effects(), room.waiting()) == ([], [])


def test_proxy_refuses_a_tool_that_changed_after_its_review(room: Room) -> None:
    with speaking(room) as speaker:
        number = speaker.pay("ann")
        room.await_question()
        (room.home / "changed").touch()
        room.decide("approve")
        assert "The server changed send_money" in speaker.hear_error(number)
    assert room.effects() == []


def test_proxy_runs_nothing_while_sayso_is_unavailable(room: Room) -> None:
    with speaking(room, SAYSO_URL=f"http://127.0.0.1:{find_ports()}") as speaker:
        assert "cannot be reached" in speaker.hear_error(speaker.order("call", tool="look_up", args={"what": "x"}))
    assert room.effects() == []


@pytest.mark.parametrize("server", [["--", "false"], ["--", "cat"], ["--url", "http://127.0.0.1:9/mcp"]])
def test_proxy_reports_a_missing_server(room: Room, server: list[str]) -> None:
    command = [PYTHON, "-m", "sayso", "mcp", *server]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=room.environ(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("The MCP server is unreachable")


def test_proxy_runs_nothing_without_a_key(room: Room) -> None:
    with speaking(room, SAYSO_KEY="wrong") as speaker:
        assert "SAYSO_KEY" in speaker.hear_error(speaker.pay("ann"))
    assert room.effects() == []


def test_proxy_continues_a_repeated_call_after_its_timeout(room: Room) -> None:
    with speaking(room, "--wait", "0") as speaker:
        assert "Make the same call again" in speaker.hear_error(speaker.pay("ann"))
        room.decide("approve")
        assert speaker.hear(speaker.pay("ann"))["is_error"] is False
    assert len(room.effects()) == 1


def test_parked_call_survives_restarts_and_runs_once(room: Room) -> None:
    with speaking(room, "--park", "0") as speaker:
        parked = speaker.hear(speaker.pay("ann", do="once"))
    assert parked["result_type"] == "input_required"
    room.decide("approve")
    with speaking(room, "--park", "0") as speaker:
        for _ in range(2):
            again = speaker.hear(speaker.pay("ann", do="once", state=parked["request_state"]))
            assert again["structured_content"] == {"sent": 7}
        assert "Idempotency-Key" in speaker.hear_error(speaker.pay("eve", do="once", state=parked["request_state"]))
    assert len(room.effects()) == 1


def test_proxy_parks_only_calls_of_capable_clients(room: Room) -> None:
    with speaking(room, "--park", "0", mode="legacy") as speaker:
        number = speaker.pay("ann")
        room.decide("approve")
        assert speaker.hear(number)["is_error"] is False


def test_hints_count_only_with_trust_hints(room: Room) -> None:
    with speaking(room) as speaker:
        speaker.order("call", tool="look_up", args={"what": "secret"})
        assert room.decide("deny").items[0].tool.idempotent is False
    with speaking(room, "--trust-hints") as speaker:
        speaker.order("call", tool="look_up", args={"what": "secret"})
        assert room.decide("deny").items[0].tool.idempotent is True


def test_documented_configuration_works(room: Room) -> None:
    page = (CHECKOUT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    written = re.search(r"^### MCP\n.*?^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert written is not None
    assert len(written[1].splitlines()) <= 15
    (server,) = json.loads(written[1])["mcpServers"].values()
    assert server["command"] == "sayso"
    options, behind = server["args"][1 : server["args"].index("--")], server["args"][server["args"].index("--") + 1 :]
    assert behind
    assert set(server["env"]) == {"SAYSO_URL", "SAYSO_KEY"}
    with speaking(room, *options) as speaker:
        number = speaker.pay("ann")
        room.decide("approve")
        assert speaker.hear(number)["is_error"] is False
