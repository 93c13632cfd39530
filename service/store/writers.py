"""Writers: what features add to the commit of a change, each in the order of their table."""

from collections.abc import Callable
from typing import NamedTuple

from sayso.records.suspensions import Change, SuspensionRecord
from service.store.connection.commits import Commit
from service.store.keys import TenantKeys


class Update(NamedTuple):
    """One change of a suspension as its commit saves it.

    `after` has the new version, and the first new event the number `first_seq`. `pairs` are the records that the change
    saves, each with the one before it or None.
    """

    before: SuspensionRecord | None
    change: Change
    after: SuspensionRecord
    pairs: tuple[tuple[SuspensionRecord | None, SuspensionRecord], ...]
    first_seq: int
    at_ms: int


Writer = Callable[[Commit, TenantKeys, Update], None]
"""Adds guards and writes to the commit of an update."""
