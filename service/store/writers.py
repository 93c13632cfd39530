"""Writers: what features add to the commit of a change, each in the order of their table."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sayso.records.suspensions import Change, SuspensionRecord
from service.store.connection.commits import Commit
from service.store.keys import TenantKeys


class Update(NamedTuple):
    """One change of a suspension as its commit saves it.

    `after` has the new version, and the first new event the number `first_seq`.
    """

    before: SuspensionRecord | None
    change: Change
    after: SuspensionRecord
    first_seq: int

    @property
    def at_ms(self) -> int:
        """The time of the change."""
        return self.after.updated_at_ms

    @property
    def pairs(self) -> Iterator[tuple[SuspensionRecord | None, SuspensionRecord]]:
        """Each record that the change saves, with the one before it or None."""
        yield self.before, self.after
        if self.change.following is not None:
            yield None, self.change.following


Writer = Callable[[Commit, TenantKeys, Update], None]
"""Adds guards and writes to the commit of an update."""
