"""Read what the desk's API answers, as far as agents, reviewers and the command line need it.

A newer desk may say more: what is not known here is left out, never refused.
"""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.canonical_json import JsonObject


class Reply(BaseModel):
    """Something that came from the desk."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class ActorSeen(Reply):
    """Who acted."""

    id: str
    kind: str = ""


class ToolSeen(Reply):
    """The call that is asked about."""

    name: str
    args: JsonObject
    idempotent: bool = False


class PromptSeen(Reply):
    """What stands beside the call."""

    title: str | None = None
    body: str | None = None
    reason: str | None = None


class FallbackSeen(Reply):
    """What decides at the deadline."""

    action: str


class TermsSeen(Reply):
    """Under which terms it was asked."""

    deadline_at: datetime
    reviewers: tuple[str, ...] = ()
    fallback: FallbackSeen
    rule_id: str | None = None


class OutcomeSeen(Reply):
    """How an item ended."""

    verdict: str
    args: JsonObject | None = None
    value: JsonValue = None
    message: str | None = None
    by: ActorSeen
    start_by: datetime

    @property
    def may_run(self) -> bool:
        """Whether the call has leave to run."""
        return self.verdict in ("approved", "answered")


class ReportSeen(Reply):
    """What whoever ran the call said came of it."""

    success: bool
    output: JsonValue = None
    error: str | None = None


class PermitSeen(Reply):
    """That the leave to run was spent."""

    redeemed_at: datetime
    holder: str
    report: ReportSeen | None = None


class DoubtSeen(Reply):
    """That the call may already have run."""

    begun_at: datetime
    idempotency_key: str


class ItemSeen(Reply):
    """One thing that is asked."""

    item_id: str
    kind: str
    tool: ToolSeen
    prompt: PromptSeen = PromptSeen()
    allowed: tuple[str, ...] = ()
    choices: tuple[JsonValue, ...] | None = None
    target_arg: str | None = None
    response_schema: JsonObject | None = None
    terms: TermsSeen
    resembles: tuple[str, ...] = ()
    digest: str
    doubt: DoubtSeen | None = None
    outcome: OutcomeSeen | None = None
    permit: PermitSeen | None = None
    state: str = ""


class RunRefSeen(Reply):
    """The run a suspension belongs to."""

    id: str
    agent: str
    owner: str
    claimed_title: str = ""
    claimed_context: JsonObject = Field(default_factory=dict)


class EndSeen(Reply):
    """How a run ended."""

    status: str
    result: JsonValue = None
    error: str | None = None


class Suspension(Reply):
    """The saved pause of a run, with what is asked in it."""

    id: str
    status: str
    created_at: datetime
    deadline_at: datetime | None = None
    run: RunRefSeen
    items: tuple[ItemSeen, ...] = ()
    end: EndSeen | None = None
    following_id: str | None = None

    @property
    def pending(self) -> bool:
        """Whether it still waits for people."""
        return self.status == "pending"


class UnreadableSeen(Reply):
    """A record that is there and cannot be read."""

    suspension_id: str
    run_id: str | None = None
    reason: str = ""


class SuspensionPage(Reply):
    """Some suspensions, and apart from them those that cannot be read."""

    suspensions: tuple[Suspension, ...]
    next_skip: int | None = None
    unreadable: tuple[UnreadableSeen, ...] = ()


class Run(Reply):
    """A run as it stands."""

    id: str
    agent: str
    owner: str
    claimed_title: str = ""
    status: str
    state: str = ""
    suspension_id: str
    created_at: datetime
    updated_at: datetime
    result: JsonValue = None
    error: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more can happen to it."""
        return self.status not in ("running", "suspended")


class RunPage(Reply):
    """Some runs."""

    runs: tuple[Run, ...]
    next_skip: int | None = None
    unreadable: tuple[UnreadableSeen, ...] = ()


class RunEvent(Reply):
    """One event of a run's trail."""

    seq: int
    at: datetime
    type: str
    data: dict[str, Any]
    hash: str


class HeadSeen(Reply):
    """The last event of a trail, as the run's record names it."""

    seq: int
    hash: str


class EventPage(Reply):
    """Some events, where the next ones begin, and where the whole trail ended before they were read."""

    events: tuple[RunEvent, ...]
    next_after: int
    head: HeadSeen | None = None
    fault: str | None = None


class DecidedItem(Reply):
    """What became of an item."""

    suspension_id: str
    item_id: str
    status: str
    outcome: OutcomeSeen | None = None


class RedeemedItem(Reply):
    """Leave that was spent: exactly this may run now."""

    suspension_id: str
    item_id: str
    tool: str
    args: JsonObject
    idempotency_key: str
    attempt: int


class SessionSeen(Reply):
    """A fresh session."""

    token: str
    name: str
    roles: tuple[str, ...] = ()
    expires_at: datetime


class Key(Reply):
    """A key as it is listed; `key` is there once, when it is made."""

    id: str
    name: str
    kind: str = "agent"
    created_at: datetime
    revoked_at: datetime | None = None
    ends_at: datetime | None = None
    context: JsonObject = Field(default_factory=dict)
    key: str | None = None


class KeyPage(Reply):
    """All keys."""

    keys: tuple[Key, ...]


class FreezeSeen(Reply):
    """What is frozen: by whom, since when and why."""

    id: str
    scope: str
    reason: str = ""
    by: str
    at: datetime


class FreezePage(Reply):
    """All that is frozen."""

    freezes: tuple[FreezeSeen, ...]


class Nothing(Reply):
    """An answer without a body."""


class Finding(Reply):
    """One part of a running Sayso: whether it works, and what to do where it does not."""

    part: str
    ok: bool
    told: str
    todo: str = ""


class FindingPage(Reply):
    """Every part that the desk can see."""

    findings: tuple[Finding, ...]


class RulesChecked(Reply):
    """Whether rules could be put in force."""

    ok: bool
    rules: int
    version: str | None = None
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ExternalEventsSeen(Reply):
    """What became of events that were told."""

    added: int
    repeated: int
    count: int
