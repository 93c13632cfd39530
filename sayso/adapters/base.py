"""Base of the framework adapters, which put another framework's agent behind `sayso.runner.protocol.Framework`."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypeVar

from sayso.canonical_json import JsonObject
from sayso.records.suspensions import Origin
from sayso.records.tool_calls import ToolDefinition

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
        return Origin(
            framework=self.framework,
            framework_version=_find_version(self.package),
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
        status = getattr(error, "status_code", None)
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


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unpackaged"
