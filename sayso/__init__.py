"""The SDK of Sayso: `gate`, `Client` and `AsyncClient`. Names are imported on first use, so `import sayso` is cheap."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sayso.core.packages import VERSION

if TYPE_CHECKING:
    from sayso.client import AsyncClient, Client
    from sayso.errors import CallFailed, Denied, InDoubt, SaysoError, Suspended
    from sayso.gating.decorator import gate

__version__ = VERSION

__all__ = ["AsyncClient", "CallFailed", "Client", "Denied", "InDoubt", "SaysoError", "Suspended", "gate"]

_PLACES = {"AsyncClient": "client", "Client": "client", "gate": "gating.decorator"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'sayso' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"sayso.{_PLACES.get(name, 'errors')}"), name)
