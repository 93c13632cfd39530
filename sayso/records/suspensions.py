"""Frozen models for suspensions, their runs and leases.

A run begins as a suspension without items. It is decided at once, so starting a run is the same as resuming one.
"""

from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import AliasChoices, Field, JsonValue

from sayso.canonical_json import JsonObject
from sayso.records.base import Immutable
from sayso.records.events import Event
from sayso.records.items import Binding, Item
from sayso.records.run_state import SealedState, StateRef
from sayso.records.tool_calls import ToolResult

DUE_AGAIN_MS = 3_000
"""How soon a decided suspension that no worker has leased is put on the ready list again."""


class Status(StrEnum):
    """Where a suspension stands."""

    PENDING = "pending"
    DECIDED = "decided"
    RESUMING = "resuming"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class RunStatus(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    DEGRADED = "degraded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing more can happen to the run."""
        return self not in (RunStatus.RUNNING, RunStatus.SUSPENDED)


class RunRef(Immutable):
    """The run a suspension belongs to. `owner` is the name of who asked for it, `key_id` the credential they used.

    `facts` are the run's trusted context, from its registered agent or its credential. `claimed` is the context that
    came with the request, which nobody has checked; records of earlier versions call it `context`.
    """

    id: str
    agent: str
    owner: str
    thread_id: str
    title: str = ""
    request_id: str | None = None
    tags: tuple[str, ...] = ()
    facts: JsonObject = Field(default_factory=dict)
    claimed: JsonObject = Field(default_factory=dict, validation_alias=AliasChoices("claimed", "context"))
    started_at_ms: int = 0
    key_id: str | None = Field(default=None, description="Null for a session, and for a run of an earlier version.")


OURS = "sayso"
"""The framework of a run that is driven by our own runner."""


class Origin(Immutable):
    """Which software paused the run, and from which set of tools it was built."""

    framework: str = OURS
    framework_version: str = "1"
    adapter: str = "runner"
    state_schema: str = "sayso.run/1"
    manifest_digest: str = ""

    @property
    def resumer(self) -> str:
        """How a run of this software goes on."""
        return "runner" if self.framework == OURS else self.framework


class ResumeSpec(Immutable):
    """How the run goes on: driven by a worker's resumer, called back, or fetched by whoever asked."""

    mode: Literal["worker", "poll"] = "worker"
    coverage: Literal["all", "any"] = "all"
    resumer: str = "runner"
    endpoint_id: str | None = Field(default=None, description="The instance of another protocol that asks.")
    tells: bool = Field(default=False, description="Whether the endpoint is told by a signed message once it is over.")


class Lease(Immutable):
    """One worker's turn at driving the run; the attempt is the fencing token, `step` names the last step it saved."""

    holder: str
    attempt: int
    until_ms: int
    step: str = ""


class Intent(Immutable):
    """A call that was about to start: written before the tool runs, cleared when its batch is saved.

    `item_id` names the item whose permit it spends; a call that the policy allowed has none. `result` is there when
    the call has ended while others of its batch still ran.
    """

    item_id: str | None = None
    call_id: str
    index: int
    tool: str
    idempotency_key: str
    idempotent: bool
    attempt: int
    holder: str
    begun_at_ms: int
    result: ToolResult | None = None
    in_vain: int | None = Field(default=None, description="The earlier attempt that is known not to have started it.")


class RunEnd(Immutable):
    """How a run ended: its final status, what it produced, and why where it went wrong."""

    status: RunStatus
    result: JsonValue = None
    error: str | None = None


class Receipt(Immutable):
    """What became of the decision, with the moment of each stage."""

    decided_at_ms: int | None = None
    enqueued_at_ms: int | None = None
    job_id: str | None = None
    leased_at_ms: int | None = None
    resumed_at_ms: int | None = None
    settled_at_ms: int | None = None
    redrives: int = 0
    tries: int = 0
    error: str | None = None


class SuspensionRecord(Immutable):
    """The saved pause of one run; `sayso.suspension/1`."""

    id: str
    tenant: str
    version: int = 0
    status: Status
    created_at_ms: int
    updated_at_ms: int
    run: RunRef
    step: int = 0
    origin: Origin = Origin()
    items: tuple[Item, ...] = ()
    resume: ResumeSpec = ResumeSpec()
    on_deny: Literal["continue", "degrade", "fail"] = "continue"
    state: StateRef | None = None
    lease: Lease | None = None
    journal: tuple[Intent, ...] = ()
    receipt: Receipt = Receipt()
    end: RunEnd | None = None
    waits_for: tuple[str, ...] = Field(default=(), description="The tools that a freeze kept the run from starting.")
    failed_calls: int = Field(default=0, description="How many calls that people let run failed before this pause.")
    previous_id: str | None = None
    following_id: str | None = None
    due_at_ms: int | None = Field(default=None, description="When somebody must look; a copy of it is on the schedule.")

    @property
    def binding(self) -> Binding:
        """What the digests of this suspension's items are bound to."""
        return Binding(tenant=self.tenant, run_id=self.run.id, attempt=1, suspension_id=self.id)

    @property
    def approved(self) -> bool:
        """Whether every item ended with leave to go on."""
        return all(item.outcome is not None and item.outcome.may_run for item in self.items)

    @property
    def deadline_at_ms(self) -> int | None:
        """The earliest deadline among the items still open."""
        return min((item.terms.deadline_at_ms for item in self.items if item.open), default=None)

    @property
    def run_status(self) -> RunStatus:
        """Where the run stands, as far as this suspension tells."""
        if self.end is not None:
            return self.end.status
        if self.status in (Status.PENDING, Status.DECIDED) and self.items:
            return RunStatus.SUSPENDED
        return RunStatus.CANCELLED if self.status is Status.CANCELLED else RunStatus.RUNNING


class Change(NamedTuple):
    """What a verb returns: the next record and all that is to be saved with it, in one commit.

    `following` is the run's next suspension; `ready` puts the suspension on the list of what a worker is to take up.
    After `until_ms`, where that is not 0, it may no longer be saved: what it rests on is not known for longer.
    """

    record: SuspensionRecord
    events: tuple[Event, ...] = ()
    following: SuspensionRecord | None = None
    state: SealedState | None = None
    ready: bool = False
    until_ms: int = 0
