"""Models of the API's responses. Fields that a newer desk adds are ignored."""

from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.core.canonical_json import JsonObject

ResponseModelT = TypeVar("ResponseModelT", bound="ResponseModel")


class ResponseModel(BaseModel):
    """Base class of response models."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class ActorView(ResponseModel):
    """The person, agent or part of Sayso that acted."""

    id: str
    kind: str = ""


class ToolView(ResponseModel):
    """The tool call of an item."""

    name: str
    args: JsonObject
    idempotent: bool = False


class PromptView(ResponseModel):
    """The text shown with the call."""

    title: str | None = None
    body: str | None = None
    reason: str | None = None


class FallbackView(ResponseModel):
    """The decision made at the deadline."""

    action: str


class TermsView(ResponseModel):
    """The terms of an item."""

    deadline_at: datetime
    reviewers: tuple[str, ...] = ()
    fallback: FallbackView
    rule_id: str | None = None
    secrets: tuple[str, ...] = ()
    match_number: bool = False


class ShownView(ResponseModel):
    """What a reviewer's page had shown when they decided."""

    display_hash: str
    values: int
    values_shown: int
    paths: tuple[str, ...] = ()
    look_ms: int


class DecisionView(ResponseModel):
    """A decision on an item; `shown` is None if it was not measured."""

    action: str
    by: ActorView
    at: datetime
    shown: ShownView | None = None
    grant_id: str = ""


class ConstraintView(ResponseModel):
    """A limit on one argument. The value of `at_most` is in millionths."""

    path: str
    kind: str
    value: JsonValue = None


class OfferView(ResponseModel):
    """The call that a denial offers: within the constraints and otherwise the same, it runs once without asking."""

    grant_id: str
    until: datetime
    constraints: tuple[ConstraintView, ...]
    text: str


class OutcomeView(ResponseModel):
    """The outcome of an item."""

    verdict: str
    args: JsonObject | None = None
    value: JsonValue = None
    message: str | None = None
    by: ActorView
    start_by: datetime
    offer: OfferView | None = None

    @property
    def may_run(self) -> bool:
        return self.verdict in ("approved", "answered")


class ReportView(ResponseModel):
    """The reported result of a call."""

    success: bool
    output: JsonValue = None
    error: str | None = None


class PermitView(ResponseModel):
    """A redeemed permit."""

    redeemed_at: datetime
    holder: str
    report: ReportView | None = None


class DoubtView(ResponseModel):
    """A call whose effect is unknown: it may have run."""

    begun_at: datetime
    idempotency_key: str


class DeliveryView(ResponseModel):
    """The delivery of an item's card over one channel."""

    channel: str
    person: str = ""
    state: str = ""
    step: int = 0
    outcome: bool = False
    reason: str | None = None
    next_try_at: datetime | None = None
    sent_at: datetime | None = None
    seen_at: datetime | None = None


class ClaimView(ResponseModel):
    """A reviewer's notice that they handle an item."""

    by: ActorView
    until: datetime


class InquiryView(ResponseModel):
    """A reviewer's question to the requester, and the answer."""

    id: str
    item_id: str = ""
    by: ActorView
    text: str
    answer: str | None = None

    @property
    def open(self) -> bool:
        return self.answer is None


class InquiryPage(ResponseModel):
    """The questions that wait for the requester."""

    status: str
    inquiries: tuple[InquiryView, ...]


class ItemView(ResponseModel):
    """One item of a suspension."""

    item_id: str
    kind: str
    tool: ToolView
    prompt: PromptView = PromptView()
    allowed: tuple[str, ...] = ()
    choices: tuple[JsonValue, ...] | None = None
    target_arg: str | None = None
    response_schema: JsonObject | None = None
    terms: TermsView
    resembles: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    computed: JsonObject | None = None
    assessment: JsonObject | None = None
    digest: str
    decisions: tuple[DecisionView, ...] = ()
    voided: tuple[DecisionView, ...] = ()
    doubt: DoubtView | None = None
    outcome: OutcomeView | None = None
    permit: PermitView | None = None
    number: str | None = None
    denied_before: JsonObject | None = None
    freeze: JsonObject | None = None
    state: str = ""
    deliveries: tuple[DeliveryView, ...] = ()
    claim: ClaimView | None = None
    inquiries: tuple[InquiryView, ...] = ()


class WhoView(ResponseModel):
    """Who is behind a run, as the desk verified it."""

    owner: str | None = None
    person: str | None = None
    person_name: str = ""
    issuer: str = ""


class RunRefView(ResponseModel):
    """The run of a suspension."""

    id: str
    agent: str
    owner: str
    key_maker: str = ""
    thread_id: str | None = None
    claimed_title: str = ""
    claimed_context: JsonObject = Field(default_factory=dict)
    who: WhoView | None = None


class EndView(ResponseModel):
    """The end of a run."""

    status: str
    result: JsonValue = None
    error: str | None = None


class Suspension(ResponseModel):
    """A saved wait of a run, with its items."""

    id: str
    status: str
    created_at: datetime
    deadline_at: datetime | None = None
    run: RunRefView
    items: tuple[ItemView, ...] = ()
    end: EndView | None = None
    following_id: str | None = None
    erasure: dict[str, Any] | None = None

    @property
    def pending(self) -> bool:
        return self.status == "pending"


class UnreadableView(ResponseModel):
    """A stored record that cannot be read."""

    suspension_id: str
    run_id: str | None = None
    reason: str = ""


class SuspensionPage(ResponseModel):
    """One page of suspensions, and the records that cannot be read."""

    suspensions: tuple[Suspension, ...]
    next_skip: int | None = None
    unreadable: tuple[UnreadableView, ...] = ()


class Run(ResponseModel):
    """A run."""

    id: str
    agent: str
    owner: str
    thread_id: str | None = None
    claimed_title: str = ""
    status: str
    state: str = ""
    suspension_id: str
    created_at: datetime
    updated_at: datetime
    result: JsonValue = None
    error: str | None = None
    erasure: dict[str, Any] | None = None

    @property
    def ended(self) -> bool:
        return self.status not in ("running", "suspended")


class RunPage(ResponseModel):
    """One page of runs."""

    runs: tuple[Run, ...]
    next_skip: int | None = None
    unreadable: tuple[UnreadableView, ...] = ()


class RunEvent(ResponseModel):
    """One event of a run's audit trail."""

    seq: int
    at: datetime
    type: str
    data: dict[str, Any]
    hash: str
    erased_by: int | None = None


class HeadView(ResponseModel):
    """The last event of a trail, according to the run's record."""

    seq: int
    hash: str


class EventPage(ResponseModel):
    """One page of events. `head` is the end of the trail before it; a `partial` page is an agent's, without some."""

    events: tuple[RunEvent, ...]
    next_after: int
    head: HeadView | None = None
    partial: bool = False
    fault: str | None = None


class RedeemedItem(ResponseModel):
    """A call whose permit was redeemed: exactly these arguments may run now."""

    suspension_id: str
    item_id: str
    tool: str
    args: JsonObject
    idempotency_key: str
    attempt: int


class Empty(ResponseModel):
    """A response without a body."""


class ExternalEventsView(ResponseModel):
    """The result of adding external events."""

    added: int
    repeated: int
    count: int
