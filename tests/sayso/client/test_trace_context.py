"""Requests carry the caller's trace context where the caller has one."""

import subprocess
import sys

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider

from sayso.client import Client
from sayso.client.trace_context import find_traceparent, traced_as

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_client_sends_the_context_of_the_current_span() -> None:
    came: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        came.append(request.headers.get("traceparent"))
        return httpx.Response(404, json={"type": "about:blank", "detail": "none"})

    with Client("http://desk", "key", transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(Exception, match="none"):
            client.find("sus_1")
        with TracerProvider().get_tracer("agent").start_as_current_span("task") as span:
            with pytest.raises(Exception, match="none"):
                client.find("sus_1")
            context = span.get_span_context()
    assert came == [None, f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"]


def test_context_of_a_protocol_comes_before_that_of_a_span() -> None:
    with TracerProvider().get_tracer("proxy").start_as_current_span("call"), traced_as(GIVEN):
        assert find_traceparent() == GIVEN


@pytest.mark.parametrize("given", [None, 7, "", "00-1-2-3", f"{GIVEN}\r\nx: y", f"{GIVEN}0"])
def test_malformed_context_of_a_protocol_is_ignored(given: object) -> None:
    with traced_as(given):
        assert find_traceparent() is None


def test_client_imports_no_opentelemetry() -> None:
    script = "import sys, sayso.client; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
