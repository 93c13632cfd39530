"""Frozen models for grants that Sayso proposes, because people approved like calls and never denied one."""

from pydantic import Field

from sayso.records.base import Immutable


class Learning(Immutable):
    """What the decision on an item teaches: its rule learns grants, and was the one with this digest.

    `would_allow` are the grants on probation that would have let the call run.
    """

    rule_digest: str
    would_allow: tuple[str, ...] = ()


class Learned(Immutable):
    """Where a proposed grant comes from, and what it still has to show.

    `like` is the digest of what the approved calls have in common. `probation` is how many calls that it would have
    allowed people must approve before it can take force, for `lasts_s` then.
    """

    like: str
    approvals: int = Field(description="How many like calls people had approved when it was proposed.")
    proposed_at_ms: int
    probation: int
    lasts_s: int


class Denial(Immutable):
    """The denial of a call that a learned grant covers. It suspends the grant."""

    by: str
    at_ms: int
    suspension_id: str
    item_id: str

    @property
    def place(self) -> tuple[str, str]:
        """The suspension and the item that was denied."""
        return self.suspension_id, self.item_id


class OverruledDenial(Immutable):
    """A denial after which a person has reinstated the grant."""

    denial: Denial
    by: str
    at_ms: int
