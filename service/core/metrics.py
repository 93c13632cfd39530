"""The counters and histograms of one process. Each process counts for itself, from zero at its start."""

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from sayso.core.clock import monotonic_ms
from sayso.errors import SaysoError, TooManyRequests, Unavailable

Operation = TypeVar("Operation", bound=Callable[..., Coroutine[Any, Any, Any]])

disable_created_metrics()  # type: ignore[no-untyped-call]  # they add a series for each, with its start
PROCESS = CollectorRegistry()
"""The metrics of this process. The library's own registry adds figures of the interpreter that nobody needs."""

OPERATIONS = ("decide", "propose", "start", "suspend")
RESULTS = ("done", "refused", "failed")
LIMITS = ("backlog", "open_items", "pace", "other")  # all values of the labels: no text of a request becomes one
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_REPLY_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


def _counter(name: str, text: str, label: str, values: Sequence[str]) -> Callable[[object], None]:
    """Return a function that counts by the value of a label; all but the `values` count as `other`."""
    counter = Counter(name, text, (label,), registry=PROCESS)
    children = {value: counter.labels(value) for value in values}

    def note(value: object) -> None:
        children.get(str(value), children["other"]).inc()

    return note


_note_refused_request = _counter(
    "sayso_refused_requests", "Requests to suspend, start or propose that got 429, by the limit.", "limit", LIMITS
)
_DURATIONS = Histogram(
    "sayso_operation_duration_seconds",
    "How long the service took for an operation, by result.",
    ("operation", "result"),
    registry=PROCESS,
    buckets=_SECONDS,
)
_DURATION = {(name, result): _DURATIONS.labels(name, result) for name in OPERATIONS for result in RESULTS}
_REPLIES = Histogram(
    "sayso_store_reply_seconds",
    "Time from a command on a pipelined connection to the store's reply.",
    registry=PROCESS,
    buckets=_REPLY_SECONDS,
)
note_reply: Callable[[float], None] = _REPLIES.observe  # count a reply of the store by its time in seconds

_REFUSED_RECORDS = Counter(
    "sayso_refused_records",
    "Reads of stored values whose MAC is missing or wrong.",
    registry=PROCESS,
)
note_refused_record: Callable[[], None] = _REFUSED_RECORDS.inc  # count a value whose MAC is wrong

_REASONS = ("ask", "clusterdown", "loading", "misconf", "moved", "noreplicas", "oom", "readonly", "tryagain", "other")
note_refused_write = _counter(  # count a command that the store refused, by its reason
    "sayso_refused_writes", "Commands that the store refused for its state, by its reason.", "reason", _REASONS
)


def timed(operation: str, run: Operation) -> Operation:
    """Return `run`, counted with its duration and result as one of `OPERATIONS`."""

    @wraps(run)
    async def measure(*args: Any, **kwargs: Any) -> Any:
        began_ms, result = monotonic_ms(), "failed"
        try:
            done = await run(*args, **kwargs)
            result = "done"
        except SaysoError as error:
            result = "failed" if isinstance(error, Unavailable) else "refused"
            if isinstance(error, TooManyRequests) and operation != "decide":
                _note_refused_request(error.facts.get("limit"))
            raise
        finally:
            _DURATION[operation, result].observe((monotonic_ms() - began_ms) / 1000)
        return done

    return cast(Operation, measure)
