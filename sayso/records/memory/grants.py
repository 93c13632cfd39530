"""Frozen models for grants: calls that a person lets run without being asked about each."""

from enum import StrEnum

from pydantic import Field

from sayso.canonical_json import digest_json
from sayso.records.base import Immutable
from sayso.records.decisions import Actor, list_filled
from sayso.records.memory.bounds import ALL_ARGUMENTS
from sayso.records.memory.learning import Denial, Learned, OverruledDenial
from sayso.records.memory.offers import Constraint

NO_ARGUMENTS = digest_json({})
"""The digest of the other arguments of a grant whose calls have none."""

COUNTER_PREFIX = "grant."
"""The beginning of the names of counters that grants spend."""


class GrantSum(Immutable):
    """The most that an argument may be in sum over all calls of a grant, in millionths."""

    of: str
    max: int


class GrantState(StrEnum):
    """Whether a grant lets calls run: only one `in_force` does."""

    PROBATION = "probation"
    WAITING = "waiting"
    IN_FORCE = "in_force"
    ENDED = "ended"
    REVOKED = "revoked"
    SUSPENDED = "suspended"


class GrantScope(StrEnum):
    """Which arguments the calls of a grant may have: none at all, exactly those that it states, or any others, too."""

    NONE = "none"
    EXACT = "exact"
    ANY = "any"


class Permission(Immutable):
    """What people let an agent do from `at_ms` until `until_ms`, and the names of the counters that its calls spend."""

    id: str
    agent: str
    owner: str
    at_ms: int
    until_ms: int
    granters: tuple[Actor, ...]
    suspension_id: str
    item_id: str
    revoked_by: str | None = None
    revoked_at_ms: int | None = None

    @property
    def per_s(self) -> int:
        """Its length in seconds, for which its counters remember every call."""
        return -(-(self.until_ms - self.at_ms) // 1000)

    @property
    def count_counter(self) -> str:
        """The name of the counter of its calls."""
        return f"{COUNTER_PREFIX}{self.id}.count"

    @property
    def sum_counter(self) -> str:
        """The name of the counter of what its calls add up."""
        return f"{COUNTER_PREFIX}{self.id}.sum"


class Grant(Permission):
    """The right of one agent to make like calls without asking, until `until_ms`, while its rule stays as it was.

    `rule_digest` and `definition` are the digests of the rule and of the tool's definition when it was granted.
    Arguments without a constraint and not in `free` stay as they were: `rest_digest` is their digest. A grant from
    before they were fixed has neither, and covers no other arguments. `offered` marks what a denial offered instead of
    its call. A `learned` grant has no granters while it is on probation, and a denial of a call that it covers suspends
    it, until people have `overruled` that one.
    """

    rule_id: str
    rule_digest: str
    subagent: str | None = None
    tool: str
    definition: str
    constraints: tuple[Constraint, ...] = ()
    rest_digest: str = ""
    free: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    count: int | None = None
    sum: GrantSum | None = None
    people: int = Field(default=1, description="How many people must grant it before it is in force.")
    each_of: tuple[str, ...] = Field(
        default=(), exclude_if=lambda names: not names, description="For each, a different granter must stand."
    )
    reason: str = ""
    offered: bool = False
    learned: Learned | None = None
    denial: Denial | None = None
    overruled: tuple[OverruledDenial, ...] = Field(default=(), exclude_if=lambda denials: not denials)

    @property
    def scope(self) -> GrantScope:
        """Which arguments its calls may have."""
        if ALL_ARGUMENTS in self.free:
            return GrantScope.ANY
        return GrantScope.EXACT if self.constraints or self.free or self.keeps_others else GrantScope.NONE

    @property
    def keeps_others(self) -> bool:
        """Whether its calls have further arguments, which must stay as they were."""
        return self.rest_digest not in ("", NO_ARGUMENTS)

    @property
    def is_from_before(self) -> bool:
        """Whether it was given when arguments without a constraint were free. It covers none of them now."""
        return not self.rest_digest and ALL_ARGUMENTS not in self.free

    @property
    def is_confirmed(self) -> bool:
        """Whether everybody has granted it who must."""
        return len(self.granters) >= self.people and list_filled(self.each_of, self.granters) == [*self.each_of]

    @property
    def on_probation(self) -> bool:
        """Whether Sayso proposed it and not everybody has granted it who must: it lets nothing run."""
        return self.learned is not None and not self.is_confirmed

    def can_return(self, now_ms: int) -> bool:
        """Return whether a denial suspends it, and its time is not over."""
        return self.find_state(now_ms) is GrantState.SUSPENDED and now_ms < self.until_ms

    def has_overruled(self, denial: Denial) -> bool:
        """Return whether a person has reinstated the grant after this denial."""
        return any(overruled.denial.place == denial.place for overruled in self.overruled)

    def tries(self, now_ms: int) -> bool:
        """Return whether it is on probation, so that what it would allow is recorded."""
        return self.on_probation and self.find_state(now_ms) in (GrantState.PROBATION, GrantState.WAITING)

    def find_state(self, now_ms: int) -> GrantState:
        """Return whether it lets calls run at this time."""
        if self.revoked_at_ms is not None:
            return GrantState.REVOKED
        if self.denial is not None:
            return GrantState.SUSPENDED
        if now_ms >= self.until_ms:
            return GrantState.ENDED
        if self.learned is not None and not self.granters:
            return GrantState.PROBATION
        return GrantState.IN_FORCE if self.is_confirmed else GrantState.WAITING
