"""Runs of the real trpc-agent-go wait at the desk, and run once what people approved."""

from typing import Any

import httpx
import pytest

from sayso.errors import AlreadyRedeemed
from sayso.timeline.external_events import Kind
from sayso.timeline.merging import build_entries
from sayso.timeline.trpc_states import decode_all, find_suspensions, write_tool_results, write_user_reply
from service.edge.api.external_events import ExternalEntryView
from tests.frameworks.mcp.desks import Desk
from tests.frameworks.trpc_agent_go.conftest import Hosts
from tests.frameworks.trpc_agent_go.hosts import Host, read_text
from tests.frameworks.trpc_agent_go.servers import PATIENCE_S, GoServer
from tests.journeys.stacks import await_restart, kill
from tests.sayso.timeline.recorded import SHOWN, describe
from tests.sayso.timeline.test_merging import kept

pytestmark = pytest.mark.timeout(240)

ANN, BOB = {"to": "ann", "amount": 5}, {"to": "bob", "amount": 6}


@pytest.fixture(
    params=[("payments", "events"), ("payments", "agui"), ("office", "events"), ("office", "agui")], ids="-".join
)
def host(hosts: Hosts, request: pytest.FixtureRequest) -> Host:
    """A graph, and a graph in a graph, over each kind of events."""
    return hosts(*request.param)


def pay(host: Host, args: dict[str, Any]) -> Any:
    """Let the agent pay, up to its question."""
    waits = host.start(("send_money", args))
    assert waits is not None
    return waits


def test_approved_call_runs_once_as_it_was_approved(host: Host, desk: Desk) -> None:
    waits = pay(host, ANN)
    assert desk.decide("approve").items[0].tool.args == ANN
    assert host.resume(waits) is None
    assert desk.effects() == [ANN]
    with pytest.raises(AlreadyRedeemed):
        host.resume(waits)
    assert desk.effects() == [ANN]
    permit = desk.reviewer.find(waits.id).items[0].permit
    assert permit is not None
    assert permit.report is not None
    assert permit.report.success


def test_edited_call_runs_with_the_arguments_of_the_reviewer(host: Host, desk: Desk) -> None:
    waits = pay(host, ANN)
    desk.decide("approve", args={"to": "ann", "amount": 1})
    host.resume(waits)
    assert desk.effects() == [{"to": "ann", "amount": 1}]


def test_denied_call_does_not_run_and_the_model_reads_why(host: Host, desk: Desk) -> None:
    waits = pay(host, ANN)
    desk.decide("deny", message="too much")
    host.resume(waits)
    assert desk.effects() == []
    said = read_text(host.events)
    assert "denied: too much" in said or host.agent == "office", said


def test_interrupts_of_one_node_are_asked_in_turn(hosts: Hosts, desk: Desk) -> None:
    host = hosts()
    first = host.start(("send_money", ANN), ("send_money", BOB))
    assert first is not None
    desk.decide("deny", message="not ann")
    second = host.resume(first)
    assert second is not None
    assert second.items[0].tool.args == BOB
    desk.decide("approve")
    assert host.resume(second) is None
    assert desk.effects() == [BOB]


@pytest.mark.parametrize("killed", ["agent", "service", "worker", "all"])
@pytest.mark.parametrize("action", ["approve", "deny"])
def test_answer_outlives_what_is_killed_before_it(
    hosts: Hosts, desk: Desk, server: GoServer, killed: str, action: Any
) -> None:
    host = hosts()
    waits = pay(host, ANN)
    if killed in ("agent", "all"):
        server.kill()
    for name in ("service", "worker"):
        if killed in (name, "all"):
            await_restart(desk.stack, name, kill(desk.stack, name))
    desk.decide(action)
    if killed in ("agent", "all"):
        server.start()
    host.resume(waits)
    assert desk.effects() == ([ANN] if action == "approve" else [])


def test_call_that_its_server_died_in_does_not_run_again(hosts: Hosts, desk: Desk, server: GoServer) -> None:
    host = hosts()
    waits = pay(host, {"to": "die", "amount": 5})
    desk.decide("approve")
    with pytest.raises(httpx.TransportError):
        host.resume(waits)
    server.kill()
    server.start()
    with pytest.raises(AlreadyRedeemed):
        host.resume(waits)
    assert len(desk.effects()) == 1


def test_calls_of_the_caller_are_answered_with_tool_messages(hosts: Hosts) -> None:
    host = hosts("helper", "agui")
    parameters = {"type": "object", "properties": {"to": {"type": "string"}}}
    tools = [{"name": "ask_mail", "description": "Asks.", "parameters": parameters}]
    events = host.send('[["ask_mail", {"to": "ann"}], ["ask_mail", {"to": "bob"}]]', tools=tools)
    waiting = find_suspensions(decode_all(list(events)))
    assert [(one.mechanism, one.prompt) for one in waiting] == [
        ("external_tool", {"to": "ann"}),
        ("external_tool", {"to": "bob"}),
    ]
    results = {waiting[0].key: "Denied: not ann", waiting[1].key: "mail of bob"}
    answered = host.send("", messages=write_tool_results(waiting, results))
    assert "Denied: not ann; mail of bob" in read_text(answered)
    assert find_suspensions(decode_all([*events, *answered])) == []


def test_long_running_tool_is_answered_with_a_user_message(hosts: Hosts) -> None:
    host = hosts("helper")
    (waiting,) = find_suspensions(decode_all(list(host.send('[["book", {"to": "ann"}]]'))))
    assert (waiting.mechanism, waiting.name, waiting.prompt) == ("long_running_tool", "book", {"to": "ann"})
    reply = write_user_reply(waiting, "booked")
    assert "The result of book" in read_text(host.send(str(reply["content"])))


def test_timeline_shows_the_run_as_it_was_recorded(hosts: Hosts, desk: Desk) -> None:
    host = hosts()
    waits = pay(host, ANN)
    desk.decide("approve", args={"to": "ann", "amount": 2})
    host.resume(waits)
    shown = read_timeline(desk, waits.run.id)
    assert [describe(entry) for entry in shown if entry.kind is not Kind.QUIET] == SHOWN["payments"]


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ("handoff", '[["transfer_to_agent", {"agent_name": "clerk", "message": "file it"}]]'),
        ("tools", '[["send_money", {"to": "bob", "amount": -1}], ["book", {"to": "ann"}], ["say", {"to": "eve"}]]'),
        ("code", "```python\nhi\n```"),
    ],
)
def test_live_events_are_shown_as_recorded(hosts: Hosts, run: str, text: str) -> None:
    shown = build_entries(kept("trpc_agent_go", hosts("helper").send(text)))
    assert [describe(entry) for entry in shown if entry.kind is not Kind.QUIET] == SHOWN[run]


def test_timeline_of_agui_events_knows_them_all(hosts: Hosts, desk: Desk) -> None:
    host = hosts(door="agui")
    waits = pay(host, ANN)
    desk.decide("deny")
    host.resume(waits)
    kinds = {entry.kind for entry in read_timeline(desk, waits.run.id)}
    assert kinds == {Kind.QUIET, Kind.TEXT, Kind.STEP, Kind.WAIT, Kind.REASONING, Kind.END}


def read_timeline(desk: Desk, run_id: str) -> list[ExternalEntryView]:
    """Return the external entries of a run's timeline."""
    url, headers = f"{desk.stack.url}/api/v1/runs/{run_id}/timeline", {"Authorization": f"Bearer {desk.reviewer.key}"}
    entries = httpx.get(url, headers=headers, timeout=PATIENCE_S).json()["entries"]
    return [ExternalEntryView.model_validate(entry["external"]) for entry in entries if entry["external"] is not None]
