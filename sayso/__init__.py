"""Put a person before what agents do: `gate` for functions, `Client` and `AsyncClient` for everything else.

What is named here is imported when it is used, so that `import sayso` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sayso.client import AsyncClient, Client
    from sayso.errors import CallFailed, Denied, InDoubt, SaysoError, Suspended
    from sayso.gating.decorator import gate

__version__ = "0.1.0"

__all__ = ["AsyncClient", "CallFailed", "Client", "Denied", "InDoubt", "SaysoError", "Suspended", "gate"]

_PLACES = {"AsyncClient": "client", "Client": "client", "gate": "gating.decorator"}


def __getattr__(name: str) -> Any:
    """Import what is named here when somebody asks for it."""
    if name not in __all__:
        raise AttributeError(f"module 'sayso' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"sayso.{_PLACES.get(name, 'errors')}"), name)
