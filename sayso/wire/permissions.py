"""Views of what lets calls run without asking: standing grants, and mandates."""

from pydantic import Field

from sayso.core.records.permissions import GrantScope, GrantState, MandateState
from sayso.wire.items import ConstraintView
from sayso.wire.models import Timestamp, View


class LearnedView(View):
    """Where a proposed grant comes from, and what it would have allowed on probation."""

    approvals: int = Field(description="How many like calls people had approved when it was proposed.")
    proposed_at: Timestamp = Field(validation_alias="proposed_at_ms")
    probation: int = Field(description="How many calls that it would have allowed people must approve.")
    ready: bool = Field(description="Whether people have approved so many, so that it can be put in force.")
    would_allow: int = Field(description="The calls that it would have allowed. How people decided them:")
    approved: int
    edited: int
    denied: int
    unanswered: int = Field(description="Nobody decided them, or not yet.")


class DenialView(View):
    """The denial that suspended a learned grant."""

    by: str
    at: Timestamp = Field(validation_alias="at_ms")
    suspension_id: str
    item_id: str


class OverruledDenialView(View):
    """A denial after which a person has reinstated a learned grant."""

    denial: DenialView
    by: str
    at: Timestamp = Field(validation_alias="at_ms")


class GrantView(View):
    """A grant and its use."""

    id: str
    sentence: str = Field(description="Which calls run without asking, how often and until when.")
    state: GrantState
    void: bool = Field(description="Whether its rule is gone or changed, so that it lets nothing run.")
    rule_id: str
    agent: str
    owner: str
    tool: str
    scope: GrantScope = Field(
        description="`none`: calls without arguments. `exact`: with those of `constraints` and `free`, and all others "
        "as in the granted call. `any`: with any others, too."
    )
    constraints: tuple[ConstraintView, ...]
    free: tuple[str, ...] = Field(description="Arguments that may have any value or be missing; `args` for all.")
    count: int | None
    sum: str | None = Field(description="The most in sum, as a number.")
    at: Timestamp = Field(validation_alias="at_ms")
    until: Timestamp = Field(validation_alias="until_ms")
    people: int = Field(description="How many people must grant it before it is in force.")
    granted_by: list[str]
    reason: str
    offered: bool = Field(description="Whether a denial offered it; it then lets one call run.")
    suspension_id: str
    item_id: str
    calls: int = Field(description="The calls that it has let run, and those it holds a place for.")
    total: str = Field(description="Their sum, as a number.")
    last_used_at: Timestamp | None
    revoked_by: str | None
    revoked_at: Timestamp | None = Field(validation_alias="revoked_at_ms")
    learned: LearnedView | None = Field(description="Set if Sayso proposed it.")
    denial: DenialView | None = Field(description="The one that suspends it.")
    overruled: list[OverruledDenialView] = Field(description="The earlier ones, after which people reinstated it.")


class GrantList(View):
    """Grants of the last month, the latest first."""

    grants: list[GrantView]


class MandateView(View):
    """A mandate, or the plan of one, and its use."""

    id: str
    state: MandateState
    void: bool = Field(description="Whether a rule that permitted it is gone or changed; calls of that rule are asked.")
    sentences: list[str] = Field(
        description="Which calls run without asking, how often and for how long, and which are asked about or denied."
    )
    agent: str
    owner: str
    thread_id: str = Field(description="The conversation whose calls it covers.")
    run_id: str | None = Field(description="The only run whose calls it covers; null for all of the conversation.")
    title: str
    count: int = Field(description="The most calls.")
    sum: str | None = Field(description="The most that all calls may add up, as a number.")
    at: Timestamp | None = Field(description="When it was approved; null before.")
    until: Timestamp | None
    approved_by: list[str]
    suspension_id: str
    item_id: str
    calls: int = Field(description="The calls that it has let run, and those it holds a place for.")
    total: str = Field(description="Their sum, as a number.")
    last_used_at: Timestamp | None
    revoked_by: str | None
    revoked_at: Timestamp | None

    @property
    def in_force(self) -> bool:
        """Whether calls inside it run without asking."""
        return self.state == "in_force"


class MandateList(View):
    """Approved mandates of the last month, the latest first."""

    mandates: list[MandateView]
