"""Views of the rules: replays of recorded calls, versions, and candidates in shadow."""

from decimal import Decimal
from enum import StrEnum

from pydantic import Field

from sayso.core.canonical_json import JsonObject
from sayso.wire.models import Timestamp, View


class Effect(StrEnum):
    """What rules do with a call."""

    ALLOWED = "allowed"
    ASKED = "asked"
    DENIED = "denied"


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
