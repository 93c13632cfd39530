"""Spans hold ids alone, and a collector that is away, slow or hostile costs the desk nothing but its spans."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.core.metrics import PROCESS
from service.core.outgoing.http import Posts
from service.core.settings import Settings
from service.features.tracing import exporting
from service.features.tracing.acts import Act
from tests.collectors import Collector, attributes_of, collecting, hanging
from tests.service.edge.api.aap.clients import make_instance, make_provisioner, suspension_of
from tests.service.worlds import POLICY, World
from tests.waits import until

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
CALL = {
    "tool": "wire",
    "args": {"iban": "DE44500105175407324931", "note": "for the tulips"},
    "definition": {"description": "Sends gold.", "parameters": {"type": "object"}},
    "call_id": "call-of-anna",
}
TEXTS = ("DE44", "tulips", "Sends gold", "call-of-anna", "Gold for", "a visible reason", "paid to", "anna", "sayso_")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture
def endpoint(collector: Collector) -> str:
    """The collector's address; a test may name another by its parameter."""
    return collector.url


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, endpoint: str) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, otlp_endpoint=endpoint)


async def run_call(world: World, **headers: str) -> dict[str, Any]:
    """Ask about a call, approve it, redeem its permit and report its result; return the suspension."""
    async with world.client("demo") as agent, world.client("anna") as anna:
        body = {"mode": "poll", "calls": [CALL], "title": "Gold for Anna"}
        asked = (await agent.post("/api/v1/suspensions", json=body, headers=headers)).raise_for_status().json()
        place, digest = f"/api/v1/suspensions/{asked['id']}/items/i1", asked["items"][0]["digest"]
        decision = {"action": "approve", "digest": digest, "message": "a visible reason"}
        (await anna.post(f"{place}/decision", json=decision)).raise_for_status()
        (await agent.post(f"{place}/redeem", headers={"Idempotency-Key": "k-1"})).raise_for_status()
        report = {"success": True, "output": "paid to Berta"}
        answer = await agent.post(f"{place}/outcome", json=report, headers={"Idempotency-Key": "k-1"})
        ended: dict[str, Any] = answer.raise_for_status().json()
        return ended


def count(result: str) -> float:
    return PROCESS.get_sample_value("sayso_spans_total", {"result": result}) or 0.0


async def test_acts_of_a_call_are_spans_in_the_agents_trace_with_ids_alone(world: World, collector: Collector) -> None:
    ended = await run_call(world, traceparent=PARENT)

    async def arrived() -> bool:
        return len(collector.spans()) == 4

    await until(arrived)
    spans = {span.name: span for span in collector.spans()}
    assert {(span.trace_id.hex(), span.parent_span_id.hex()) for span in spans.values()} == {(TRACE, SPAN)}
    facts = {name.removeprefix("sayso."): attributes_of(span) for name, span in spans.items()}
    assert list(facts) == ["asked", "decided", "redeemed", "executed"]
    assert {span["sayso.suspension.id"] for span in facts.values()} == {ended["id"]}
    assert {span["gen_ai.tool.name"] for span in facts.values()} == {"wire"}
    assert facts["decided"]["sayso.verdict"] == "approved"
    sent = b"".join(collector.bodies)
    assert [text for text in TEXTS if text.encode() in sent.replace(b"sayso.", b"")] == []


async def test_acts_of_a_protocol_request_are_spans_in_its_clients_trace(world: World, collector: Collector) -> None:
    """A client of the Agent Approval Protocol sends the trace with its ask alone, not when it consumes."""
    provisioner = await make_provisioner(world.wiring)
    async with make_instance(world, provisioner, instance_name="bot") as bot, world.client("anna") as anna:
        body = {"tool": "wire", "arguments": CALL["args"], "timeout": "10m", "agent_reasoning": "Gold for Anna"}
        headers = {"Idempotency-Key": "k-1", "traceparent": PARENT}
        asked = (await bot.client.post("/requests", json=body, headers=headers)).raise_for_status().json()
        suspension_id = suspension_of(asked["id"])
        shown = (await anna.get(f"/api/v1/suspensions/{suspension_id}")).raise_for_status().json()
        decision = {"action": "approve", "digest": shown["items"][0]["digest"], "message": "a visible reason"}
        (await anna.post(f"/api/v1/suspensions/{suspension_id}/items/i1/decision", json=decision)).raise_for_status()
        (await bot.consume(asked["id"])).raise_for_status()
        (await bot.client.post(f"/requests/{asked['id']}/outcome", json={"status": "succeeded"})).raise_for_status()

    async def arrived() -> bool:
        return len(collector.spans()) == 4

    await until(arrived)
    assert collector.names() == {"sayso.asked", "sayso.decided", "sayso.redeemed", "sayso.executed"}
    assert {(span.trace_id.hex(), span.parent_span_id.hex()) for span in collector.spans()} == {(TRACE, SPAN)}
    assert {attributes_of(span)["sayso.suspension.id"] for span in collector.spans()} == {suspension_id}
    sent = b"".join(collector.bodies)
    assert [text for text in TEXTS if text.encode() in sent.replace(b"sayso.", b"")] == []


@pytest.mark.parametrize("sent", ["", "00-1-2-01", f"{PARENT}-more", f"00-{'0' * 32}-{SPAN}-01", "x" * 10_000])
async def test_malformed_trace_is_ignored(world: World, sent: str) -> None:
    ended = await run_call(world, traceparent=sent)
    record = (await world.wiring.desk.suspensions.read(ended["id"])).record
    assert record.run.traceparent == ""


async def test_trace_that_is_not_sampled_has_no_spans(world: World, collector: Collector) -> None:
    await run_call(world, traceparent=f"00-{TRACE}-{SPAN}-00")
    await run_call(world, traceparent=PARENT)

    async def arrived() -> bool:
        return len(collector.spans()) >= 4

    await until(arrived)
    assert len(collector.spans()) == 4


@contextmanager
def closed() -> Iterator[str]:
    """Yield an address where nobody listens."""
    with hanging() as url:
        pass
    yield url


class TestFaultyCollector:
    """Requests succeed, and the spans are counted as dropped."""

    @pytest.fixture(params=[closed, hanging, "status", "flood"])
    def endpoint(self, request: pytest.FixtureRequest, collector: Collector) -> Iterator[str]:
        if isinstance(request.param, str):
            collector.status = 500
            collector.floods = request.param == "flood"
            yield collector.url
        else:
            with request.param() as url:
                yield url

    async def test_faulty_collector_fails_no_request(self, world: World) -> None:
        before = count("dropped")
        ended = await run_call(world, traceparent=PARENT)
        assert ended["status"] == "resumed"

        async def dropped() -> bool:
            return count("dropped") - before == 4

        await until(dropped)


async def test_spans_beyond_the_queue_are_dropped_and_counted() -> None:
    exporter, before = exporting.SpanExporter("http://127.0.0.1:1", Posts()), count("dropped")
    for number in range(exporting.MOST_WAITING + 7):
        exporter._put(Act("sayso.asked", PARENT, number + 1, 1, 0.0, {}))
    assert count("dropped") - before == 7


async def test_last_spans_are_sent_when_the_process_ends(collector: Collector, settings: Settings) -> None:
    async with exporting.observe_spans(settings) as (exporter,):
        assert isinstance(exporter, exporting.SpanExporter)
        exporter._put(Act("sayso.asked", PARENT, 1, 1, 0.0, {}))
    assert collector.names() == {"sayso.asked"}
