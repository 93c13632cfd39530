"""The trace that an MCP client names in `_meta` of its call has the spans of that call."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.stacks import Stack, running_stack
from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.collectors import Collector, attributes_of, collecting
from tests.frameworks.mcp.desks import PATIENCE_S, Desk, open_client

pytestmark = pytest.mark.timeout(240)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ACTS = {"sayso.asked", "sayso.decided", "sayso.redeemed", "sayso.executed"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Stack]:
    """A Sayso that sends spans to the collector."""
    environ = {
        "SAYSO_POLICY": str(CHECKOUT / "tests" / "frameworks" / "policy.yaml"),
        "SAYSO_WORKERS": "1",
        "SAYSO_OTLP_ENDPOINT": collector.url,
    }
    home: Path = tmp_path_factory.mktemp("traced")
    with running_stack(home, environ) as stack:
        yield stack


def test_call_through_the_proxy_has_its_spans_in_the_trace_of_its_client(desk: Desk, collector: Collector) -> None:
    with open_client(desk) as client:
        untraced = client.pay("bob")
        desk.decide("approve")
        client.read_result(untraced)
        number = client.pay("ann", meta={"traceparent": f"00-{TRACE}-{SPAN}-01"})
        waits = desk.decide("approve")
        assert client.read_result(number)["structured_content"] == {"sent": 7}
        assert wait_until(lambda: collector.names() >= ACTS, PATIENCE_S)
    assert collector.names() == ACTS
    assert {(span.trace_id.hex(), span.parent_span_id.hex()) for span in collector.spans()} == {(TRACE, SPAN)}
    assert {attributes_of(span)["sayso.suspension.id"] for span in collector.spans()} == {waits.id}
