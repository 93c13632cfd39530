"""Revoked keys and deactivated reviewers, and what a revoked key asked.

A revocation is for good. It withdraws what the key asked, whatever other key has the same name by now. A rotated key
that ends at the end of its overlap is not revoked: its successor goes on with what it asked, until that is revoked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sayso.records.suspensions import RunRef


class Key(Protocol):
    """What a revocation needs to know of a key."""

    @property
    def id(self) -> str:
        """The key's id."""
        ...

    @property
    def name(self) -> str:
        """The name of the key's holder."""
        ...

    @property
    def kind(self) -> str:
        """What the key may do."""
        ...

    @property
    def created_at_ms(self) -> int:
        """When the key was made."""
        ...

    @property
    def revoked_at_ms(self) -> int | None:
        """When the key was revoked."""
        ...

    @property
    def ends_at_ms(self) -> int | None:
        """When the key ends because it was rotated."""
        ...

    @property
    def predecessor_id(self) -> str | None:
        """The key that this one replaces."""
        ...


class NamedKey(NamedTuple):
    """An agent's key, for runs that were saved before they named their key."""

    id: str
    created_at_ms: int


@dataclass(frozen=True)
class Revocations:
    """Whom to trust no longer: keys whose runs are withdrawn, and reviewers who were deactivated."""

    revoked: frozenset[str] = frozenset()
    by_name: Mapping[str, tuple[NamedKey, ...]] = field(default_factory=dict)
    inactive: frozenset[str] = frozenset()

    def find_withdrawal(self, run: RunRef) -> str | None:
        """Return why nothing of this run may start any more, or None while the key that asked for it counts.

        A run without a key's id is withdrawn when every key that its owner had when it started is.
        """
        if run.key_id is not None:
            revoked = run.key_id in self.revoked
            return f"The key {run.key_id} of {run.owner}, which asked for it, was revoked." if revoked else None
        had = [key.id for key in self.by_name.get(run.owner, ()) if key.created_at_ms <= run.started_at_ms]
        if had and all(key_id in self.revoked for key_id in had):
            return f"The key of {run.owner}, which asked for it, was revoked."
        return None


def find_revoked(keys: Iterable[Key]) -> frozenset[str]:
    """Return the ids of the keys whose runs are withdrawn.

    These are the revoked keys, and the keys that had ended by rotation when the last of their successors was revoked.
    """
    newest_first = sorted(keys, key=lambda key: key.created_at_ms, reverse=True)
    successors: dict[str, list[str]] = {}
    for key in newest_first:
        if key.predecessor_id is not None:
            successors.setdefault(key.predecessor_id, []).append(key.id)
    found = {key.id: key.revoked_at_ms for key in newest_first if key.revoked_at_ms is not None}
    known = -1
    while known != len(found):
        known = len(found)
        for key in newest_first:
            after = successors.get(key.id, [])
            if key.id in found or key.ends_at_ms is None or not after or not all(one in found for one in after):
                continue
            last_ms = max(found[one] for one in after)
            if key.ends_at_ms <= last_ms:
                found[key.id] = last_ms
    return frozenset(found)
