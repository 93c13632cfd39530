"""The caller's place in a trace (W3C Trace Context), for the desk's own spans of the call."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_given: ContextVar[str | None] = ContextVar("sayso_traceparent", default=None)


@contextmanager
def traced_as(traceparent: object) -> Iterator[None]:
    """Send requests under the trace context that a protocol has brought; what is malformed is ignored."""
    known = traceparent if isinstance(traceparent, str) and _TRACEPARENT.fullmatch(traceparent) else None
    token = _given.set(known or _given.get())
    try:
        yield
    finally:
        _given.reset(token)


def find_traceparent() -> str | None:
    """Return the given trace context, or that of OpenTelemetry's current span; None without any.

    The package is never imported here: a process that has a span has imported it.
    """
    if (given := _given.get()) is not None:
        return given
    tracing = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return None
    try:
        span = tracing.get_current_span().get_span_context()
        return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}" if span.is_valid else None
    except Exception:  # noqa: BLE001  telemetry never fails a call
        return None
