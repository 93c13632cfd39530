"""Show records as the API does: their own names, moments as RFC 3339, nothing that is the desk's own business."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import (
    AliasPath,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    WithJsonSchema,
)

from sayso.canonical_json import JsonObject
from sayso.clock import iso_utc
from sayso.records.decisions import Actor, Decision, DecisionAction, Verdict
from sayso.records.events import TrailEntry
from sayso.records.items import Answer, Item, ItemKind, ItemTool, Prompt
from sayso.records.suspensions import RunEnd, RunRef, RunStatus, Status, SuspensionRecord
from sayso.records.terms import EscalationStep, Fallback, Quorum
from sayso.transitions.item_states import ItemState, RunState, find_item_state
from service.store.runs.runs import Run
from service.store.suspensions.reading import UnreadableRecord

Moment = Annotated[
    int,
    PlainSerializer(iso_utc, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T12:03:04.120Z"]}),
]
"""Milliseconds inside, RFC 3339 in UTC outside."""


def _check_moment(value: object) -> object:
    """Take text alone: a number could be seconds or milliseconds."""
    if not isinstance(value, str) or "T" not in value:
        raise ValueError("is not a moment; write it as 2026-11-21T12:00:00Z")
    return value


SentMoment = Annotated[AwareDatetime, BeforeValidator(_check_moment)]
"""A moment that comes in: RFC 3339, with its zone."""


class View(BaseModel):
    """A record as it is shown; made with `of(record)`."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class RunView(View):
    """A run as it stands."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "run_019aa4a2f0d1b3c45d6e7f8091a2b3c4",
                    "agent": "demo",
                    "owner": "demo",
                    "thread_id": "run_019aa4a2f0d1b3c45d6e7f8091a2b3c4",
                    "claimed_title": "Move savings",
                    "tags": ["bank"],
                    "status": "degraded",
                    "state": "degraded",
                    "suspension_id": "sus_019aa4a2f1e2c3d4e5f60718293a4b5c",
                    "created_at": "2026-11-21T12:03:04.120Z",
                    "updated_at": "2026-11-21T12:03:05.007Z",
                    "result": {"text": "The savings were not moved: the reviewer denied the transfer."},
                    "error": "transfer was denied: the savings account is frozen",
                }
            ]
        }
    )

    id: str
    agent: str
    owner: str = Field(description="The credential that asked for it.")
    thread_id: str
    claimed_title: str = Field(validation_alias="title", description="What the agent calls it; nobody has checked it.")
    tags: tuple[str, ...]
    status: RunStatus
    state: RunState = Field(description="The status, or `call_failed` where it ended although an approved call failed.")
    suspension_id: str = Field(description="The latest suspension: the one that waits, while the run is suspended.")
    created_at: Moment = Field(validation_alias="created_at_ms")
    updated_at: Moment = Field(validation_alias="updated_at_ms")
    result: JsonValue
    error: str | None

    @classmethod
    def of(cls, run: Run) -> "RunView":
        """Return the view of a run."""
        return cls.model_validate(run)


class UnreadableView(View):
    """A record that is there and cannot be read: it is damaged, altered, or of a later version."""

    suspension_id: str
    run_id: str | None = Field(description="Its run, where that is known.")
    reason: str

    @classmethod
    def list_of(cls, found: Iterable[object]) -> "list[UnreadableView]":
        """Return the views of those in a list that are unreadable."""
        return [cls.model_validate(one) for one in found if isinstance(one, UnreadableRecord)]


class EventView(View):
    """One event of a run's trail, chained to the one before by its hash."""

    seq: int
    at: Moment = Field(validation_alias="at_ms")
    type: str
    data: JsonObject
    hash: str

    @classmethod
    def of(cls, entry: TrailEntry) -> "EventView":
        """Return the view of an event."""
        return cls.model_validate(entry)


class DecisionView(View):
    """One word on one item."""

    id: str
    item_id: str
    action: DecisionAction
    args: JsonObject | None
    value: JsonValue
    message: str | None
    args_digest: str = Field(description="The digest of the item as the reviewer saw it.")
    by: Actor
    at: Moment = Field(validation_alias="at_ms")

    @classmethod
    def of(cls, decision: Decision) -> "DecisionView":
        """Return the view of a decision."""
        return cls.model_validate(decision)


class OutcomeView(View):
    """How an item ended."""

    verdict: Verdict
    args: JsonObject | None = Field(description="The arguments that run, where they are not those that were asked.")
    value: JsonValue
    message: str | None
    by: Actor
    at: Moment = Field(validation_alias="at_ms")
    start_by: Moment = Field(validation_alias="start_by_ms", description="The call does not begin after this.")
    digest: str = Field(description="The digest of the call as it runs.")


class ReportView(View):
    """What whoever ran the call says came of it."""

    success: bool
    output: JsonValue
    error: str | None
    at: Moment = Field(validation_alias="at_ms")


class PermitView(View):
    """That the leave to run the call was spent; a `report` comes with calls that whoever asked runs themselves."""

    redeemed_at: Moment = Field(validation_alias="redeemed_at_ms")
    attempt: int
    holder: str
    ended_at: Moment | None = Field(
        validation_alias="ended_at_ms", description="When the call's result was saved; null while it runs or in doubt."
    )
    success: bool | None = Field(description="Whether the call succeeded.")
    report: ReportView | None


class DoubtView(View):
    """That the call was begun before and nobody knows what came of it: it may already have run."""

    begun_at: Moment = Field(validation_alias="begun_at_ms")
    attempt: int
    holder: str
    idempotency_key: str = Field(description="What the tool was given; whatever it changed may know the call by it.")


class TermsView(View):
    """Under which conditions an item was asked."""

    rule_id: str | None
    rule_version: str
    reviewers: tuple[str, ...] = Field(description="Who may decide; empty for any reviewer.")
    quorum: Quorum
    no_self_approval: bool
    deadline_at: Moment = Field(validation_alias="deadline_at_ms")
    extend_until: Annotated[Moment | None, BeforeValidator(lambda at_ms: at_ms or None)] = Field(
        validation_alias="extend_until_ms", description="How far the deadline may be put off, where it may be."
    )
    start_by_s: int
    remind_at: tuple[Moment, ...] = Field(validation_alias="remind_at_ms")
    escalate: tuple[EscalationStep, ...]
    fallback: Fallback
    channels: tuple[str, ...]


class ItemView(View):
    """One thing that is asked."""

    item_id: str
    kind: ItemKind
    call_id: str
    index: int
    tool: ItemTool
    subagent: str | None = Field(
        description="The sub-agent that makes the call; empty for the agent itself, null where nobody knows."
    )
    prompt: Prompt
    allowed: tuple[Answer, ...]
    choices: tuple[JsonValue, ...] | None
    response_schema: JsonObject | None
    target_arg: str | None
    terms: TermsView
    resembles: tuple[str, ...] = Field(
        description="Names in rules that the tool's name looks like; it was judged under those rules too."
    )
    digest: str = Field(description="Send it with a decision: it says what you decided on.")
    decisions: tuple[DecisionView, ...]
    doubt: DoubtView | None
    outcome: OutcomeView | None
    permit: PermitView | None
    state: ItemState = Field(
        default=ItemState.OPEN, description="The worst that is known: a call that was approved and failed is `failed`."
    )
    seen_by: Actor | None = Field(description="Who saw it first; noted where its fallback would approve it.")
    seen_at: Moment | None = Field(validation_alias="seen_at_ms")

    @classmethod
    def of(cls, item: Item) -> "ItemView":
        """Return the view of an item."""
        return cls.model_validate(item)


class ReceiptView(View):
    """What became of the decision, with the moment of each stage."""

    decided_at: Moment | None = Field(validation_alias="decided_at_ms")
    enqueued_at: Moment | None = Field(
        validation_alias="enqueued_at_ms", description="When it was last put before the workers; `redrives` says again."
    )
    job_id: str | None = Field(description="The workers' job that took it up.")
    leased_at: Moment | None = Field(validation_alias="leased_at_ms")
    resumed_at: Moment | None = Field(validation_alias="resumed_at_ms")
    settled_at: Moment | None = Field(validation_alias="settled_at_ms")
    redrives: int
    tries: int
    error: str | None = Field(description="Why it is decided and not yet resumed; null once it is.")


class LeaseView(View):
    """One worker's turn at driving the run."""

    holder: str
    attempt: int
    until: Moment = Field(validation_alias="until_ms")


class RunRefView(View):
    """The run a suspension belongs to."""

    id: str
    agent: str
    owner: str
    thread_id: str
    claimed_title: str = Field(validation_alias="title", description="What the agent calls it; nobody has checked it.")
    request_id: str | None
    tags: tuple[str, ...]
    context: JsonObject = Field(
        validation_alias="facts", description="What Sayso knows of the run: the context of its registered agent."
    )
    claimed_context: JsonObject = Field(
        validation_alias="claimed", description="What the agent says of the run; nobody has checked it."
    )
    started_at: Moment = Field(validation_alias="started_at_ms")
    key_id: str | None = Field(description="The key that asked for it; null for a session.")

    @classmethod
    def of(cls, run: RunRef) -> "RunRefView":
        """Return the view of a run's reference."""
        return cls.model_validate(run)


class SuspensionView(View):
    """The saved pause of a run."""

    id: str
    version: int
    status: Status
    created_at: Moment = Field(validation_alias="created_at_ms")
    updated_at: Moment = Field(validation_alias="updated_at_ms")
    deadline_at: Moment | None = Field(
        validation_alias="deadline_at_ms", description="The earliest deadline among the items still open."
    )
    run: RunRefView
    step: int
    mode: Literal["worker", "poll"] = Field(
        validation_alias=AliasPath("resume", "mode"), description="Who runs what is approved: a worker, or who asked."
    )
    items: tuple[ItemView, ...]
    on_deny: Literal["continue", "degrade", "fail"]
    receipt: ReceiptView
    lease: LeaseView | None
    end: RunEnd | None
    previous_id: str | None
    following_id: str | None

    @classmethod
    def of(cls, record: SuspensionRecord) -> "SuspensionView":
        """Return the view of a suspension."""
        view = cls.model_validate(record)
        items = zip(view.items, record.items, strict=True)
        shown = (one.model_copy(update={"state": find_item_state(record, item)}) for one, item in items)
        return view.model_copy(update={"items": tuple(shown)})
