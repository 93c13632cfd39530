"""The id and the trace of a request are on its log lines; what is malformed is ignored."""

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from service.core.caller_ids import NO_IDS
from service.edge.http.tracing import read_ids
from tests.service.worlds import World

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


async def test_ids_are_on_the_log_lines_of_their_request_alone(world: World) -> None:
    headers = {"X-Request-ID": "req-1", "traceparent": f"00-{TRACE}-{SPAN}-01"}
    with capture_logs(processors=[merge_contextvars]) as lines:
        async with world.client("root") as root:
            made = await root.post("/api/v1/keys", json={"name": "bot"}, headers=headers)
            other = await root.post("/api/v1/keys", json={"name": "other"})
    assert made.status_code == other.status_code == 201
    assert made.headers["x-request-id"] == "req-1"
    assert "x-request-id" not in other.headers
    created = [line for line in lines if line["event"] == "key_created"]
    assert [(one.get("request_id"), one.get("trace_id"), one.get("span_id")) for one in created] == [
        ("req-1", TRACE, SPAN),
        (None, None, None),
    ]


@pytest.mark.parametrize("sent", ["", "a b", "x" * 129, 'a"b', "a\u00e9", "a\nb"])
def test_malformed_request_id_is_ignored(sent: str) -> None:
    assert read_ids([(b"x-request-id", sent.encode("latin-1"))]) == NO_IDS


@pytest.mark.parametrize(
    "sent",
    [
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
    ],
)
def test_malformed_trace_is_ignored(sent: str) -> None:
    assert read_ids([(b"traceparent", sent.encode())]) == NO_IDS


def test_header_that_was_sent_twice_is_ignored() -> None:
    assert read_ids([(b"x-request-id", b"a"), (b"x-request-id", b"b")]) == NO_IDS


async def test_each_request_has_an_access_line_with_its_route_and_caller(world: World) -> None:
    with capture_logs() as lines:
        async with world.client("demo") as agent:
            await agent.get("/api/v1/suspensions/sus_unknown")
            await agent.get("/healthz")
            await agent.get("/metrics")
            await agent.get("/no/such/page?secret=1")
    known, other = [line for line in lines if line["event"] == "request"]
    assert (known["method"], known["route"], known["status"]) == ("GET", "/api/v1/suspensions/{suspension_id}", 404)
    assert known["by"] == "agent"
    assert (other["route"], other["status"]) == (None, 404)
    assert known["ms"] >= 0


async def test_trail_has_the_request_id_of_the_change(world: World) -> None:
    async with world.client("demo") as agent:
        call = {"tool": "wire", "args": {}, "definition": {"description": "", "parameters": {"type": "object"}}}
        body = {"mode": "poll", "calls": [{**call, "call_id": "c-1"}]}
        asked = await agent.post("/api/v1/suspensions", json=body, headers={"X-Request-ID": "req-7"})
        assert asked.status_code == 201
    run_id = asked.json()["run"]["id"]
    async with world.client("root") as root:
        entries = (await root.get(f"/api/v1/runs/{run_id}/events")).raise_for_status().json()["events"]
    assert {entry["data"].get("request_id") for entry in entries} == {"req-7"}
