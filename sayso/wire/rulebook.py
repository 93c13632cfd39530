"""Views of the rules: replays, versions, candidates in shadow, and grants and mandates, which let calls run unasked."""

from decimal import Decimal
from enum import StrEnum
from typing import Literal

from pydantic import Field

from sayso.core.canonical_json import JsonObject
from sayso.core.records.permissions import GrantScope, GrantState, MandateState
from sayso.wire.items import ConstraintView
from sayso.wire.models import Timestamp, View


class Effect(StrEnum):
    """What rules do with a call."""

    ALLOWED = "allowed"
    ASKED = "asked"
    DENIED = "denied"


class WouldView(View):
    """What would happen to a call."""

    verdict: Literal["allow", "ask", "deny"]


class Past(StrEnum):
    """What happened to a recorded call."""

    ALLOWED = "allowed"
    """The rules allowed it."""
    APPROVED = "approved"
    """A person approved it, or gave the value."""
    DENIED = "denied"
    """A person denied it."""
    UNDECIDED = "undecided"
    """It was asked about, and no person decided."""
    REFUSED = "refused"
    """The rules denied it."""


class ReplayStatus(StrEnum):
    """The status of a replay."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        return self not in (ReplayStatus.WAITING, ReplayStatus.RUNNING)


class ListedView(View):
    """A call that would change, with secrets masked; long arguments are left out."""

    run_id: str
    suspension_id: str = Field(description="Empty for a call that became no item.")
    item_id: str
    at: Timestamp = Field(validation_alias="at_ms")
    tool: str
    agent: str
    args: JsonObject
    before: str = Field(description="The rule that decided it; empty for the default.")
    now: str = Field(description="The rule that would decide it now; empty for the default.")
    reason: str


class CellView(View):
    """Calls with the same past and the same effects."""

    past: Past = Field(
        description="`allowed` or `refused` by the rules; `approved` or `denied` by a person; or `undecided`: it was "
        "asked about, and no person decided."
    )
    was: Effect = Field(description="What the rules did, or those to compare with would have done.")
    now: Effect
    count: int
    sums: dict[str, Decimal] = Field(description="By currency; an empty one where the calls name none.")
    listed: list[ListedView] = Field(description="The newest of them, if their effect changes.")


class RuleChangeView(View):
    """How many calls move from one rule to another; null is the default."""

    before: str | None
    after: str | None
    was: Effect
    now: Effect
    count: int


class MissingView(View):
    """Calls that cannot be judged again, by what is missing."""

    fact: str
    count: int


class ReviewTimeView(View):
    """An estimate of the reviewers' time."""

    measured: int = Field(description="Decisions of the range whose look was measured.")
    typical_ms: int | None = Field(description="The median of these looks; it stands for the others.")
    saved_ms: int = Field(description="Looks before calls that would no longer be asked about.")
    added_ms: int = Field(description="Looks before calls that would be asked about, and were not.")


class ReplayView(View):
    """A replay, its progress, and what it has counted so far."""

    id: str
    by: str
    status: ReplayStatus
    error: str
    file: str
    version: str
    compares: bool = Field(description="Whether `was` is of the rules in `base`.")
    shadow: bool = Field(description="Whether `now` is what a candidate said in shadow; nothing was judged again.")
    sum: str | None
    since: Timestamp = Field(serialization_alias="from")
    until: Timestamp = Field(serialization_alias="to")
    started_at: Timestamp
    ended_at: Timestamp | None
    runs: int = Field(description="Runs that were read.")
    of_runs: int = Field(description="About how many there are.")
    calls: int = Field(description="Recorded calls in the range, also those that cannot be judged again.")
    changed: int
    cells: list[CellView]
    changes: list[RuleChangeView]
    missing: list[MissingView]
    gaps: list[str] = Field(description="What of the range is no longer recorded.")
    review_time: ReviewTimeView


class ReplayList(View):
    """The replays of the last day, the newest first."""

    replays: list[ReplayView]


class AttestationView(View):
    """A person who attests the bytes."""

    by: str
    at: Timestamp = Field(validation_alias="at_ms")


class SpanView(View):
    """A time in which a version was in force."""

    start: Timestamp = Field(validation_alias="from_ms")
    end: Timestamp | None = Field(validation_alias="to_ms", description="Null while it still is.")
    how: str = Field(description="`start` or `changed` by a process, or `restored` by a person.")
    by: str


class VersionView(View):
    """A version of the rules."""

    version: str
    digest: str = Field(description="The SHA-256 of its bytes.")
    file: str
    in_force: bool
    withdrawn: bool = Field(description="Whether an admin put an earlier version in its place.")
    attested: int = Field(description="How many people attest exactly these bytes.")
    needed: int = Field(description="How many must, before a version takes force: SAYSO_POLICY_ATTESTATIONS.")
    attestations: list[AttestationView]
    spans: list[SpanView] = Field(description="When it was in force, the latest first.")


class VersionText(VersionView):
    """A version of the rules with its text."""

    text: str
    lists: dict[str, str] = Field(description="The texts of the files that its lists name.")


class VersionList(View):
    """The kept versions, the last saved first."""

    versions: list[VersionView]


class ShadowView(View):
    """A candidate, and when it judged calls in shadow."""

    version: str
    digest: str = Field(description="The SHA-256 of its bytes.")
    file: str
    by: str
    start: Timestamp = Field(validation_alias="began_ms")
    end: Timestamp | None = Field(validation_alias="ended_ms", description="Null while it is in shadow.")
    ended_by: str


class ShadowsView(View):
    """The candidate in shadow, and those before it."""

    current: ShadowView | None = Field(description="Null if none is in shadow.")
    ended: list[ShadowView] = Field(description="The latest first.")


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
