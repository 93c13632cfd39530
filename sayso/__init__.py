"""The SDK of Sayso: `gate`, `Client` and `AsyncClient`. Names are imported on first use, so `import sayso` is cheap."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sayso.core.packages import VERSION

if TYPE_CHECKING:
    from sayso.client import AsyncClient, Client
    from sayso.client.operations import Action, RunState, WaitingStatus
    from sayso.errors import (
        AlreadyRedeemed,
        CallFailed,
        ChangesRequested,
        Conflict,
        DeadlinePassed,
        Denied,
        Frozen,
        IdempotencyConflict,
        InDoubt,
        InvalidInput,
        NotAllowed,
        NotAuthenticated,
        NotFound,
        SaysoError,
        Suspended,
        TooManyRequests,
        Unavailable,
        Unreachable,
        Withdrawn,
    )
    from sayso.gating.decorator import gate
    from sayso.runner.tools import CallContext

__version__ = VERSION

__all__ = [
    "Action",
    "AlreadyRedeemed",
    "AsyncClient",
    "CallContext",
    "CallFailed",
    "ChangesRequested",
    "Client",
    "Conflict",
    "DeadlinePassed",
    "Denied",
    "Frozen",
    "IdempotencyConflict",
    "InDoubt",
    "InvalidInput",
    "NotAllowed",
    "NotAuthenticated",
    "NotFound",
    "RunState",
    "SaysoError",
    "Suspended",
    "TooManyRequests",
    "Unavailable",
    "Unreachable",
    "WaitingStatus",
    "Withdrawn",
    "gate",
]

_PLACES = {
    "Action": "client.operations",
    "AsyncClient": "client",
    "CallContext": "runner.tools",
    "Client": "client",
    "RunState": "client.operations",
    "WaitingStatus": "client.operations",
    "gate": "gating.decorator",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'sayso' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"sayso.{_PLACES.get(name, 'errors')}"), name)
