"""Frozen models for mandates: plans of an agent that a person approved, whose calls run without asking."""

from enum import StrEnum

from pydantic import Field

from sayso.records.base import Immutable
from sayso.records.memory.grants import COUNTER_PREFIX, GrantState, Permission
from sayso.records.memory.offers import Constraint

MANDATE = "mandate"
"""The name of the tool that the item of a mandate shows."""

MANDATE_PREFIX = "man_"
"""The beginning of the ids of mandates. The rest is that of the suspension that asked about it."""


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
        """Return whether it lets calls run at this time."""
        if self.revoked_at_ms is not None:
            return GrantState.REVOKED
        return GrantState.ENDED if now_ms >= self.until_ms else GrantState.IN_FORCE

    def cut(self, *tools: MandatedTool) -> "Mandate":
        """Return the mandate with these tools alone, as a judgement records it."""
        return self.model_copy(update={"envelope": self.envelope.model_copy(update={"tools": tools})})
