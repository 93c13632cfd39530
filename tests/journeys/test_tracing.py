"""One call from ask to delivery, over service, worker and clock, in the trace of the agent that asked."""

from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

from demo.journeys import REVIEWER
from launch.stops import wait_until
from sayso.client import Client
from sayso.client.channels import create_endpoint, verify_endpoint
from tests.collectors import Collector, attributes_of, collecting
from tests.journeys.stacks import PATIENCE_S, kill, quick_stack
from tests.journeys.waiting_agents import LET_GO, begun_in
from tests.receivers import Receiver

ACTS = {"sayso.asked", "sayso.decided", "sayso.redeemed", "sayso.executed", "sayso.delivered"}
REASON, TITLE = "because the tulips bloom", "A trip for Anna"


def test_call_has_all_spans_in_the_agents_trace_although_its_worker_was_killed(
    tmp_path: Path, receiver: Receiver
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: allow\nrules: [{id: waits, tool: wait_again, action: request_approval}]\n")
    with collecting() as collector:
        environ = {"SAYSO_OTLP_ENDPOINT": collector.url, "SAYSO_AAP_ALLOW_LOOPBACK": "true"}
        agents = "demo.agents:support,tests.journeys.waiting_agents:again"
        with (
            quick_stack(tmp_path / "home", SAYSO_AGENTS=agents, SAYSO_POLICY=str(policy), **environ) as stack,
            Client(stack.url, stack.agent_key) as agent,
            Client(stack.url) as reviewer,
        ):
            session = reviewer.sign_in(REVIEWER, stack.admin_password)
            endpoint = reviewer.exchange(create_endpoint(receiver.url, (), "hmac", "A journey"))
            assert reviewer.exchange(verify_endpoint(endpoint.id)).state == "active"
            provider = TracerProvider()
            with provider.get_tracer("agent").start_as_current_span("task") as task:
                run = agent.start_run("again", "Go.", title=TITLE)
            assert wait_until(lambda: bool(agent.find(agent.find_run(run.id).suspension_id).items), PATIENCE_S)
            asked = reviewer.find(agent.find_run(run.id).suspension_id)
            (item,) = asked.items
            assert wait_until(lambda: "sayso.asked" in collector.names(), PATIENCE_S)
            reviewer.decide(asked.id, item, "approve", message=REASON)
            assert wait_until(lambda: len(begun_in(stack.home, run.id)) == 1, PATIENCE_S)
            kill(stack, "worker")
            assert wait_until(lambda: len(begun_in(stack.home, run.id)) == 2, PATIENCE_S)
            (stack.home / LET_GO).touch()
            assert agent.await_run(run.id, PATIENCE_S).status == "completed"
            assert wait_until(lambda: collector.names() >= ACTS, PATIENCE_S), collector.names()
            secrets = (stack.agent_key, stack.admin_password, session.token)
    context = task.get_span_context()
    for span in collector.spans():
        assert int.from_bytes(span.trace_id, "big") == context.trace_id
        assert int.from_bytes(span.parent_span_id, "big") == context.span_id
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    check_facts(collector, run.id)
    sent = b"".join(collector.bodies)
    assert not [text for text in (REASON, TITLE, REVIEWER, "let go", "Go.", *secrets) if text.encode() in sent]


def check_facts(collector: Collector, run_id: str) -> None:
    """Assert that the spans name their call and its rule, and how it went."""
    known = {span.name: attributes_of(span) for span in collector.spans()}
    assert {facts["sayso.run.id"] for facts in known.values()} == {run_id}
    decided, executed = known["sayso.decided"], known["sayso.executed"]
    assert (decided["gen_ai.tool.name"], decided["sayso.rule.id"]) == ("wait_again", "waits")
    assert (decided["sayso.verdict"], decided["sayso.by"]) == ("approved", "human")
    assert executed["sayso.success"] is True
