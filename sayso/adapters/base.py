"""Base of the framework adapters, which put another framework's agent behind `sayso.runner.protocol.Framework`."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypeVar

from sayso.core.canonical_json import MAX_INTEGER, JsonObject
from sayso.core.records.suspensions import ModelUsage, Origin
from sayso.core.records.tools import ToolDefinition


class UsageMeter:
    """Adds up the model calls between two stops of a run. One call without tokens makes the sum unknown."""

    def __init__(self) -> None:
        self._noted: list[ModelUsage | None] = []

    def note(self, model: Any, input_tokens: Any, output_tokens: Any, calls: int = 1) -> None:
        """Add calls of one model. Without input tokens they are unknown: frameworks report zero for what is missing."""
        name = model if isinstance(model, str) else ""
        if not (_is_count(input_tokens) and _is_count(output_tokens)) or (calls and not input_tokens):
            self._noted.append(None)
        elif input_tokens or output_tokens:
            used = ModelUsage(model=name, input_tokens=input_tokens, output_tokens=output_tokens, model_calls=calls)
            self._noted.append(used)

    def note_total(self, input_tokens: int, output_tokens: int, calls: int) -> None:
        """Add what the framework's total has beyond the calls noted so far, of a model without a name."""
        known = [usage for usage in self._noted if usage is not None]
        more_in = input_tokens - sum(usage.input_tokens for usage in known)
        more_out = output_tokens - sum(usage.output_tokens for usage in known)
        more_calls = max(0, calls - sum(usage.model_calls or 0 for usage in known))
        if min(more_in, more_out) < 0:  # calls of an earlier part of the run were noted too
            self._noted = [usage for usage in self._noted if usage is None]
            more_in, more_out, more_calls = input_tokens, output_tokens, calls
        self.note("", more_in, more_out, more_calls)

    def read(self) -> tuple[ModelUsage, ...] | None:
        """Return the usage by model, or None if that of one call is unknown."""
        totals: dict[str, ModelUsage] = {}
        for usage in self._noted:
            if usage is None:
                return None
            totals[usage.model] = totals[usage.model].plus(usage) if usage.model in totals else usage
        return tuple(totals.values())


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER


NOT_REVIEWED = "No decision covers this call of {name}. It did not run."
TOOL_ERROR = "The tool failed without an error message."
RESUMED_ELSEWHERE = (
    "The {what} no longer waits for these decisions: another process has resumed it. The decisions were not applied. "
    "Cancel this run."
)

_DEFECTS = (TypeError, AttributeError, NameError, ImportError)
_PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Refusals of a model's server that pass: a timeout, a conflict, and too many requests."""

Result = TypeVar("Result")


class Adapter:
    """Base class for adapters. It names the framework, its package and the format of its saved state."""

    framework: ClassVar[str]
    package: ClassVar[str]
    state_schema: ClassVar[str]
    faults: ClassVar[tuple[type[Exception], ...]] = ()
    """Errors of the framework that the same state meets again."""

    @property
    def origin(self) -> Origin:
        try:
            installed = version(self.package)
        except PackageNotFoundError:
            installed = "unpackaged"
        return Origin(
            framework=self.framework,
            framework_version=installed,
            adapter=f"sayso.adapters.{self.framework}",
            state_schema=self.state_schema,
        )

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return None: the saved state is all that the framework needs to go on."""
        return None

    def is_fault(self, error: Exception) -> bool:
        """Return whether the same state meets this error again: a limit, a bug, or a request that the model refuses."""
        if isinstance(error, ExceptionGroup):
            return all(map(self.is_fault, error.exceptions))
        status = getattr(error, "status_code", getattr(error, "code", None))  # the latter is of Google's client
        if isinstance(status, int):
            return 400 <= status < 500 and status not in _PASSING_STATUSES
        return isinstance(error, (*_DEFECTS, *self.faults))


def define_tool(
    name: str, description: str | None, parameters: Mapping[str, Any], idempotent: Collection[str]
) -> ToolDefinition:
    """Return the definition of a framework's tool."""
    return ToolDefinition(
        name=name, description=description or "", parameters={**parameters}, idempotent=name in idempotent
    )


def run_blocking(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run async work to its end, even within a running event loop: gates are built at import time."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(work())).result()
