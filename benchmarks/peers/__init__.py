"""The measured systems: Sayso, two floors and Restate, each as real processes with files of its own.

All are driven in the same way: `suspend` creates a waiting call, `decide` approves it, and the tool reports its start.
"""

import secrets
from dataclasses import dataclass
from typing import Any, Protocol

_NOTE = "The customer says that the parcel came open and two of the six cups were broken; a photo is in the ticket. "


@dataclass(frozen=True)
class SuspendedCall:
    """A waiting call: its name, and the path and digest of its decision."""

    name: str
    path: str
    digest: str = ""


class Peer(Protocol):
    """A system that suspends calls until somebody decides."""

    async def suspend(self, name: str, size: int = 300) -> SuspendedCall:
        """Suspend a call with about `size` bytes of arguments."""
        ...

    async def decide(self, suspended: SuspendedCall) -> None:
        """Approve the call."""
        ...


def arguments(name: str, size: int) -> dict[str, Any]:
    """Return arguments of about `size` bytes, different for every call."""
    text = _NOTE + secrets.token_hex(8)
    return {"name": name, "note": (text * (size // len(text) + 1))[: max(0, size - 60)], "amount": 250.5}
