"""Frozen models for grants, and for mandates and the plans of agents: what runs without asking about each call."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from sayso.core.canonical_json import digest_json
from sayso.core.records.base import Immutable, Stored, is_empty
from sayso.core.records.decisions import Actor, list_filled
from sayso.core.records.envelopes import (
    ALL_ARGUMENTS,
    LONGEST_GRANT_S,
    SHORTEST_GRANT_S,
    Amount,
    ArgumentName,
    Bounds,
    Constraint,
    FreeArgument,
)
from sayso.core.records.tools import NAME_CHARACTERS, ToolName


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
        return self.suspension_id, self.item_id


class OverruledDenial(Immutable):
    """A denial after which a person has reinstated the grant."""

    denial: Denial
    by: str
    at_ms: int


NO_ARGUMENTS = digest_json({})  # the digest of the other arguments of a grant whose calls have none
COUNTER_PREFIX = "grant."  # the beginning of the names of counters that grants spend


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


class Permission(Stored):
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
        return f"{COUNTER_PREFIX}{self.id}.count"

    @property
    def sum_counter(self) -> str:
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
    free: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    count: int | None = None
    sum: GrantSum | None = None
    people: int = Field(default=1, description="How many people must grant it before it is in force.")
    each_of: tuple[str, ...] = Field((), exclude_if=is_empty)  # for each, a different granter must stand
    reason: str = ""
    offered: bool = False
    learned: Learned | None = None
    denial: Denial | None = None
    overruled: tuple[OverruledDenial, ...] = Field(default=(), exclude_if=is_empty)

    @property
    def scope(self) -> GrantScope:
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
        if self.revoked_at_ms is not None:
            return GrantState.REVOKED
        if self.denial is not None:
            return GrantState.SUSPENDED
        if now_ms >= self.until_ms:
            return GrantState.ENDED
        if self.learned is not None and not self.granters:
            return GrantState.PROBATION
        return GrantState.IN_FORCE if self.is_confirmed else GrantState.WAITING


MANDATE = "mandate"  # the name of the tool that the item of a mandate shows
MANDATE_PREFIX = "man_"  # the beginning of the ids of mandates. The rest is that of the suspension that asked about it.


class MandateState(StrEnum):
    """The state of a plan, and of the mandate that its approval makes: only one `in_force` lets calls run."""

    PROPOSED = "proposed"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"
    IN_FORCE = "in_force"
    ENDED = "ended"
    REVOKED = "revoked"


class Outside(StrEnum):
    """What happens to the calls of a conversation that its mandates do not cover."""

    ASK = "ask"
    DENY = "deny"


class MandateSum(Immutable):
    """The argument that calls add up, and the most it may be in sum, in millionths; None for no limit of its own."""

    of: str
    max: int | None = None


class MandatedTool(Immutable):
    """Calls of one tool that a mandate covers.

    `definition` is the digest of the tool's definition. Arguments without a constraint must be absent, except `free`
    ones and the one of `sum`; `args` alone frees all. `place` is its number in the envelope, which names its counters.
    With `ask` the calls are planned, and a person is asked about each.
    """

    tool: str
    definition: str
    subagent: str = ""
    constraints: tuple[Constraint, ...] = ()
    free: tuple[str, ...] = ()
    count: int | None = None
    sum: MandateSum | None = None
    place: int = 0
    ask: bool = False

    @property
    def unlimited(self) -> tuple[str, ...]:
        """The arguments that may have any value: the free ones, and a summed one without a limit of its own."""
        limited = {limit.path for limit in self.constraints}
        summed = (self.sum.of,) if self.sum is not None and self.sum.of not in limited else ()
        return tuple(dict.fromkeys((*summed, *self.free)))


class Envelope(Immutable):
    """What a mandate lets run: at most `count` calls within `for_s` seconds, each as one of `tools` says.

    `sum` limits what all calls add up together, in millionths. `rules` are the digests of the rules that permit it, by
    rule. The item that asks about it is bound to all of this. With `run_id` it covers that run alone.
    """

    for_s: int
    count: int
    sum: int | None = None
    tools: tuple[MandatedTool, ...]
    rules: dict[str, str] = Field(default_factory=dict)
    run_id: str = ""
    outside: Outside = Outside.ASK


class Mandate(Permission):
    """An approved envelope, for the calls of one agent in one conversation of its owner, until `until_ms`.

    `granters` are the people who approved it; nobody did if it lets nothing run that the rules do not allow. `person`
    is the one for whom the agent acts, if a token says so.
    """

    thread_id: str
    person: str | None = None
    envelope: Envelope
    title: str = ""

    def name_counter(self, tool: MandatedTool, kind: str) -> str:
        """Return the name of a counter of one of its tools; `kind` is `count` or `sum`."""
        return f"{COUNTER_PREFIX}{self.id}.{tool.place}.{kind}"

    def find_state(self, now_ms: int) -> GrantState:
        if self.revoked_at_ms is not None:
            return GrantState.REVOKED
        return GrantState.ENDED if now_ms >= self.until_ms else GrantState.IN_FORCE

    def cut(self, *tools: MandatedTool) -> "Mandate":
        """Return the mandate with these tools alone, as a judgement records it."""
        return self.model_copy(update={"envelope": self.envelope.model_copy(update={"tools": tools})})


MOST_MANDATED_CALLS = 1_000
MOST_TOOLS = 50
MOST_PLAN_CHARS = 20_000

HostPattern = Annotated[
    str, Field(min_length=1, max_length=253, description="A host such as api.example.com, or *.example.com.")
]
_HOST = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.:-]*[a-z0-9_])?")


class PlannedSum(Immutable):
    """The argument that calls add up, and the most in sum."""

    of: ArgumentName
    max: Amount | None = Field(default=None, description="Null for no limit of its own, beside that of the plan.")


class PlannedCalls(Bounds):
    """Calls of one tool. Arguments without a limit must be absent, except those in `free` and the one of `sum`."""

    tool: ToolName = Field(description=f"A tool of the agent; its name has {NAME_CHARACTERS}.")
    subagent: str = Field(default="", max_length=200, description="The sub-agent that makes the calls, if any.")
    hosts: dict[ArgumentName, Annotated[tuple[HostPattern, ...], Field(min_length=1, max_length=100)]] = Field(
        default_factory=dict, max_length=20, description="Arguments that must be HTTP URLs of these hosts."
    )
    within: dict[ArgumentName, Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default_factory=dict, max_length=20, description="Arguments that must be paths in this folder or below it."
    )
    free: tuple[FreeArgument, ...] = Field(
        default=(), max_length=50, description="Arguments that may have any value or be absent; `args` for all."
    )
    count: int | None = Field(default=None, ge=1, le=MOST_MANDATED_CALLS, description="The most of these calls.")
    sum: PlannedSum | None = None
    ask: bool = Field(default=False, description="Ask a person about each of these calls, as without the plan.")

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.equal, *self.at_most, *self.one_of, *self.hosts, *self.within)

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        seen: set[str] = set()
        for path in (*self.paths, *self.free):
            if path in seen:
                raise ValueError(f"{path} has two limits; keep one of equal, at_most, one_of, hosts, within and free")
            seen.add(path)
        for path in seen - {ALL_ARGUMENTS}:
            steps = path.split(".")
            above = (".".join(steps[:count]) for count in range(2, len(steps)))
            inside = next((other for other in above if other in seen), None)
            if inside is not None:
                raise ValueError(f"{path} is a part of {inside}, which has a limit, too; keep one of them")
        for host in (pattern for patterns in self.hosts.values() for pattern in patterns):
            if not _HOST.fullmatch(host):
                raise ValueError(f"{host!r} is not a host in lower case; write api.example.com or *.example.com")
        if self.ask and (self.count is not None or self.sum is not None):
            raise ValueError("a person is asked about each of these calls; leave out `count` and `sum`, or `ask`")
        return self


def check_plan_size(tools: Iterable[Any]) -> None:
    """Raise `ValueError` for more text than a person reads in one plan, before anything is made of it."""
    nodes: list[Any] = [
        {key: value for key, value in tool.items() if key != "definition"} for tool in tools if isinstance(tool, dict)
    ]
    size = 0
    while nodes:
        node = nodes.pop()
        size += len(node) if isinstance(node, str) else 1
        if isinstance(node, dict):
            nodes += [*node, *node.values()]
        elif isinstance(node, list | tuple):
            nodes += node
        if size > MOST_PLAN_CHARS:
            limit = f"the limit is {MOST_PLAN_CHARS:,} characters in its tools, without definitions"
            raise ValueError(f"The plan is too long to read: {limit}. Name fewer calls, or shorter values.")


class Plan(Immutable):
    """The calls that an agent wants to make without being asked about each."""

    title: str = Field(default="", max_length=200, description="What the plan is for.")
    reason: str = Field(default="", max_length=2000, description="Why the agent wants it, for the reviewer.")
    for_s: int = Field(ge=SHORTEST_GRANT_S, le=LONGEST_GRANT_S, description="How long it lasts, from the approval.")
    count: int = Field(ge=1, le=MOST_MANDATED_CALLS, description="The most calls of all tools together.")
    sum: Amount | None = Field(default=None, description="The most that the sums of all tools may be together.")
    tools: tuple[PlannedCalls, ...] = Field(min_length=1, max_length=MOST_TOOLS)
    outside: Outside = Field(
        default=Outside.ASK,
        description="What happens to calls outside the plan: a person is asked, or they are denied.",
    )

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        if self.sum is not None and not any(calls.sum is not None for calls in self.tools):
            raise ValueError("sum limits nothing: no tool says which argument to add up; add `sum` to a tool")
        return self
