"""Frozen models for suspensions, their runs and leases.

A run begins as a suspension without items. It is decided at once, so starting a run is the same as resuming one.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import AliasChoices, Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable, Stored, is_empty
from sayso.core.records.decisions import Actor, Erasure
from sayso.core.records.events import Event
from sayso.core.records.items import Binding, Item
from sayso.core.records.judgements import Charge
from sayso.core.records.permissions import Grant, Mandate
from sayso.core.records.run_state import SealedState, StateRef
from sayso.core.records.terms import Terms
from sayso.core.records.tools import ToolResult
from sayso.core.records.undoing import is_offer

DUE_AGAIN_MS = 3_000  # the delay before a decided suspension without a lease is put on the ready list again


class Status(StrEnum):
    """The status of a suspension."""

    PENDING = "pending"
    DECIDED = "decided"
    RESUMING = "resuming"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class RunStatus(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    DEGRADED = "degraded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self not in (RunStatus.RUNNING, RunStatus.SUSPENDED)


class Who(Immutable):
    """Who is behind a run, as verified when it began; None and empty are unknown.

    `owner` is the person who owns the requester's key, `groups` are the owner's. A signed token of `issuer` says that
    the agent acts for `person`. The managers are those that admins have set.
    """

    owner: str | None = None
    groups: tuple[str, ...] = ()
    owner_manager: str | None = None
    person: str | None = None
    person_name: str = ""
    issuer: str = ""
    person_manager: str | None = None


class ModelUsage(Immutable):
    """The calls of one model that a run has made so far, and their tokens. A model without a name is unknown."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int | None = Field(default=None, description="Null for runs of earlier versions.")

    def plus(self, other: "ModelUsage") -> "ModelUsage":
        calls = self.model_calls, other.model_calls
        return ModelUsage(
            model=self.model,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            model_calls=None if None in calls else sum(count or 0 for count in calls),
        )


MOST_TOOLS = 200  # the limit of different tools of one run whose names are kept


class Progress(Immutable):
    """What a run has done so far, as Sayso has seen it. None is unknown.

    `tools` are the names of the tools that ran, each once, in the order of their first start.
    """

    tools: tuple[str, ...] | None = ()
    usage: tuple[ModelUsage, ...] | None = None

    def with_tools(self, started: Iterable[str]) -> "Progress":
        """Return the progress after more calls; beyond `MOST_TOOLS` names the tools are unknown."""
        if self.tools is None:
            return self
        tools = tuple(dict.fromkeys((*self.tools, *started)))
        return self if tools == self.tools else self._with("tools", tools if len(tools) <= MOST_TOOLS else None)

    def with_usage(self, used: ModelUsage | None) -> "Progress":
        """Return the progress after a model call; None is a call whose tokens are unknown."""
        if self.usage is None or used is None:
            return self._with("usage", None)
        before = next((use for use in self.usage if use.model == used.model), None)
        total = used if before is None else before.plus(used)
        return self._with("usage", (*(use for use in self.usage if use.model != used.model), total))

    def with_all_usage(self, used: "Iterable[ModelUsage] | None") -> "Progress":
        """Return the progress after several model calls; None are calls whose tokens are unknown."""
        progress = self
        for use in (None,) if used is None else used:
            progress = progress.with_usage(use)
        return progress

    def _with(self, name: str, value: object) -> "Progress":
        return self.model_copy(update={name: value})


class RunRef(Immutable):
    """The run of a suspension; `owner` is the name behind the credential `key_id`.

    `facts` are trusted context of the agent or the credential. `claimed` is context of the request, which nobody has
    checked; records of earlier versions call it `context`.
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
    key_id: str | None = Field(default=None, description="Null for a session, and for runs of earlier versions.")
    # The person who made the key; empty for a session, and where nobody is known.
    key_maker: str = Field("", exclude_if=is_empty)
    tenant: str = "default"
    environment: str = ""
    who: Who | None = None
    # The caller's place in its own trace, for spans; empty where spans are off.
    traceparent: str = Field("", exclude_if=is_empty)

    @property
    def requesters(self) -> tuple[str, ...]:
        """The names that count as the requester: the key's, its owner's, and the person's that a signed token names."""
        if self.who is None:
            return (self.owner,)
        people = (self.who.owner, self.who.person.casefold() if self.who.person is not None else None)
        return tuple(dict.fromkeys((self.owner, *(name for name in people if name))))

    def list_excluded(self, terms: Terms) -> tuple[str, ...]:
        """Return who may not decide under these terms, although a reviewer: the requesters, and who made the key."""
        requesters = self.requesters if terms.no_self_approval else ()
        maker = (self.key_maker,) if terms.no_maker_approval and self.key_maker else ()
        return tuple(dict.fromkeys((*requesters, *maker)))

    def describe_who(self) -> JsonObject:
        """Return who is behind the run for an event of its trail; nothing where that is unknown."""
        return {} if self.who is None else {"who": self.who.model_dump(mode="json", exclude_defaults=True)}


OURS = "sayso"  # the framework of runs that Sayso's own runner drives


class Origin(Immutable):
    """The software that suspended the run, and the digest of its tools."""

    framework: str = OURS
    framework_version: str = "1"
    adapter: str = "runner"
    state_schema: str = "sayso.run/1"
    manifest_digest: str = ""

    @property
    def resumer(self) -> str:
        return "runner" if self.framework == OURS else self.framework


class ResumeSpec(Immutable):
    """How the run continues: a worker resumes it, or its client polls and runs the calls."""

    mode: Literal["worker", "poll"] = "worker"
    coverage: Literal["all", "any"] = "all"
    resumer: str = "runner"
    endpoint_id: str | None = Field(default=None, description="The instance of another protocol that created it.")
    notifies: bool = Field(default=False, description="Whether the endpoint gets a signed message when it is decided.")


class Lease(Immutable):
    """One worker's exclusive right to drive the run. `attempt` is the fencing token, `step` the last saved step."""

    holder: str
    attempt: int
    until_ms: int
    step: str = ""


class Intent(Immutable):
    """A call that is about to start, saved before the tool runs and removed when its batch is saved.

    `item_id` is None for a call that the policy allowed. `result` is set while others of its batch still run.
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
    charges: tuple[Charge, ...] = Field(default=(), description="What the call adds to counters of rules.")
    in_vain: int | None = Field(default=None, description="An earlier attempt that surely did not start the call.")


class RunEnd(Immutable):
    """How a run ended: its final status, its result, and an error."""

    status: RunStatus
    result: JsonValue = None
    error: str | None = None


class Receipt(Immutable):
    """The progress after the decision, with the moment of each stage."""

    decided_at_ms: int | None = None
    enqueued_at_ms: int | None = None
    job_id: str | None = None
    leased_at_ms: int | None = None
    resumed_at_ms: int | None = None
    settled_at_ms: int | None = None
    redrives: int = 0
    tries: int = 0
    error: str | None = None


class OperatorNote(Immutable):
    """What a person writes to a running agent without deciding; null as long as no model has got it."""

    id: str
    by: Actor
    text: str
    at_ms: int
    delivered_at_ms: int | None = None


class SuspensionRecord(Stored):
    """The saved wait of one run; `sayso.suspension/1`."""

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
    waits_for: tuple[str, ...] = Field(default=(), description="The tools that a freeze keeps from starting.")
    failed_calls: int = Field(default=0, description="How many approved calls failed before this suspension.")
    progress: Progress | None = Field(default=None, description="Of the run, when its calls were judged.")
    # Secrets that people typed in earlier suspensions of the run, to mask where results quote them.
    typed: tuple[str, ...] = Field((), exclude_if=is_empty)
    # What people wrote to the agent here, or in earlier suspensions of the run without being delivered there.
    notes: tuple[OperatorNote, ...] = Field((), exclude_if=is_empty)
    previous_id: str | None = None
    following_id: str | None = None
    due_at_ms: int | None = Field(default=None, description="The next moment due; the schedule has a copy.")
    erasure: Erasure | None = Field(None, exclude_if=is_empty)  # who erased the run's contents, if anybody

    @property
    def binding(self) -> Binding:
        return Binding(tenant=self.tenant, run_id=self.run.id, attempt=1, suspension_id=self.id)

    @property
    def is_drill(self) -> bool:
        """Whether it asks about a false call, which no agent sees."""
        return any(item.drill is not None for item in self.items)

    @property
    def offers_undo(self) -> bool:
        """Whether it offers to undo a call that ran. Nothing waits for it, so it is in no inbox."""
        return any(map(is_offer, self.items))

    @property
    def approved(self) -> bool:
        return all(item.outcome is not None and item.outcome.may_run for item in self.items)

    @property
    def waiting_notes(self) -> tuple[OperatorNote, ...]:
        """The notes that no model has got."""
        return tuple(note for note in self.notes if note.delivered_at_ms is None)

    @property
    def pushes_notes(self) -> bool:
        """Whether the model of its run gets notes by itself: that of one of Sayso's own agents."""
        return self.origin.framework == OURS and self.resume.resumer == "runner"

    @property
    def stops_calls(self) -> bool:
        return self.on_deny != "continue" and any(item.outcome and item.outcome.refuses for item in self.items)

    @property
    def deadline_at_ms(self) -> int | None:
        return min((item.terms.deadline_at_ms for item in self.items if item.open), default=None)

    @property
    def run_status(self) -> RunStatus:
        """The status of the run, as far as this suspension shows it."""
        if self.end is not None:
            return self.end.status
        if self.status in (Status.PENDING, Status.DECIDED) and self.items:
            return RunStatus.SUSPENDED
        return RunStatus.CANCELLED if self.status is Status.CANCELLED else RunStatus.RUNNING

    def with_item(self, item: Item) -> "SuspensionRecord":
        items = tuple(item if other.item_id == item.item_id else other for other in self.items)
        return self.model_copy(update={"items": items})


class Change(NamedTuple):
    """The result of a transition: the next record, and everything saved with it in one commit.

    `following` is the run's next suspension. `ready` puts the suspension on the ready list. The change must be saved
    before `until_ms`, unless that is 0. `released` are charges of calls that were about to start and did not.
    `grant` is what a decision also granted, and `mandate` the plan that it approved. `suspended` are the learned grants
    that it suspends. `handed_to` is the waiting worker that the commit hands the run to.
    """

    record: SuspensionRecord
    events: tuple[Event, ...] = ()
    following: SuspensionRecord | None = None
    state: SealedState | None = None
    ready: bool = False
    until_ms: int = 0
    released: tuple[Charge, ...] = ()
    grant: Grant | None = None
    mandate: Mandate | None = None
    suspended: tuple[Grant, ...] = ()
    handed_to: str = ""
