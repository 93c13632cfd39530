"""Views of channels and webhooks, reports, drills and second looks."""

from typing import Any, Literal

from pydantic import Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Verdict
from sayso.core.records.events import WebhookEvent
from sayso.core.records.proofs import Invited
from sayso.wire.models import Later, Timestamp, View

Range = Literal["24h", "7d", "30d", "90d"]  # the time of a report; it ends now


class SettingView(View):
    """A field of a channel; a secret is shown as `set, hidden`."""

    name: str
    text: str


class ChannelView(View):
    """A configured channel."""

    name: str
    kind: str
    destination: str = Field(description="The provider's host.")
    settings: tuple[SettingView, ...]


class ChannelList(View):
    """All configured channels by name."""

    channels: list[ChannelView]


class AnswerView(View):
    """The provider's answer at one address."""

    accepted: bool
    text: str = Field(description="The provider's id of the message, or the reason of the failure.")


class AnswerList(View):
    """The provider's answers, one for each address of the person."""

    answers: list[AnswerView]


class HeadlessView(View):
    """An item that a fallback decided without notifying anybody."""

    suspension_id: str
    item_id: str
    run_id: str
    agent: str
    owner: str
    tool: str
    rule_id: str | None
    verdict: Verdict
    at: Timestamp = Field(validation_alias="at_ms")


class HeadlessReport(View):
    """One page of items, the newest first."""

    items: list[HeadlessView]
    next_skip: int | None = Field(description="`skip` of the next page; null at the end.")


class HistoryItem(View):
    """A decided item, with secrets masked; its fields are the columns of an export."""

    decided_at: Timestamp
    state: str
    verdict: Verdict | None
    decided_by: str = Field(description="Those who decided, and for whom, separated by commas.")
    fallback: bool = Field(description="Whether nobody decided it in time.")
    edited: bool
    agent: str
    requester: str
    claimed_title: str | None = Field(description="The run's title, as its agent gave it.")
    tool: str
    args: JsonObject
    requested_args: JsonObject | None = Field(description="Those that the agent sent, if they were edited.")
    value: JsonValue
    reason: str | None
    message: str | None
    rule: str | None
    run_id: str
    suspension_id: str
    item_id: str
    look_ms: int | None
    comments: list[JsonObject] = Field(description="What people remarked on it: `at`, `author` and `text`.")
    invited: Later[tuple[Invited, ...]] = Field(
        description="Of those outside who decided: the address, who invited it, and what has proven it."
    )


class HistoryPage(View):
    """One page of decided items, the latest first."""

    items: list[HistoryItem]
    notes: list[str] = Field(description="Records that cannot be read, and why.")
    next_cursor: str | None = Field(description="`cursor` of the next page; null at the end.")


class OutcomesView(View):
    """What was asked, and how it was decided."""

    asked: int
    decided: int = Field(description="By people; fallbacks and rules are not counted.")
    approved: int
    denied: int
    edited: int
    fallback: int = Field(description="Items that nobody decided in time.")


class FiguresView(OutcomesView):
    """What was asked, and how people decided. Times are those to the decision."""

    approve_rate: float | None
    p50_ms: int | None = Field(description="The median, accurate to a tenth; null without decisions.")
    p95_ms: int | None


class ToolFiguresView(FiguresView):
    """The figures of one tool; an empty name stands for all tools beyond the limit."""

    tool: str
    suggested_rule: str = Field(description="A rule that would allow it, if people nearly always do.")


class PersonFiguresView(View):
    """The decisions of one person."""

    name: str
    decided: int
    measured: int = Field(description="Decisions whose look was measured.")
    p50_look_ms: int | None
    fast: int = Field(description="After a look under 3 s.")
    night: int = Field(description="Between 22:00 and 5:00, where the person is.")
    approved: int
    denied: int
    approvals_measured: int = Field(description="Approvals whose look was measured.")
    instant: int = Field(description="Those after a look under `SAYSO_ATTENTION_LOOK_MS`.")
    flagged: bool = Field(description="Whether too many approvals were instant, by the limits of the settings.")
    drills: int = Field(description="Decisions on drills in half a year, at most the last 100.")
    drills_approved: int
    drills_flagged: bool = Field(description="Whether the last sequential test of drills found too many approvals.")


class RuleCostView(OutcomesView):
    """What one rule cost; the rule `-` is the default, an empty one stands for all rules beyond the limit."""

    rule: str
    decisions: int = Field(description="Decisions of people, more than one for an item with a quorum.")
    measured: int = Field(description="Those whose look was measured.")
    people_ms: int = Field(description="Their time; an unmeasured look counts as the average of the measured ones.")
    proposals: int = Field(description="The grants that Sayso proposes for it, and that a person may put in force.")
    second_opinions: int = Field(description="Second looks taken of its calls.")
    disagreed: int = Field(description="Those in which a person disagreed with the call.")
    near_misses: int = Field(description="Calls that ran and were wrong, or that ran one step from a person.")
    sentence: str


class PointView(View):
    """One part of the range."""

    start: Timestamp = Field(validation_alias="from_ms")
    waiting: int = Field(description="Runs that waited at its end.")
    asked: int
    decided: int
    fallback: int


class InsightsView(View):
    """The figures of a range, and of the range before it."""

    range: Range
    start: Timestamp = Field(validation_alias="from_ms")
    end: Timestamp = Field(validation_alias="to_ms")
    waiting: int
    waiting_before: int = Field(description="Runs that waited at the start of the range.")
    now: FiguresView
    before: FiguresView
    points: list[PointView]
    tools: list[ToolFiguresView]
    people: list[PersonFiguresView] = Field(description="All reviewers for an admin, else the caller.")
    rules: list[RuleCostView]


class DrillView(View):
    """A template of a false call."""

    id: str
    agent: str
    requested_by: str
    tool: str
    args: JsonObject
    signs: list[str] = Field(description="What the reviewer reads after the decision.")


class DrillList(View):
    """The templates of the drills file."""

    every_h: int = Field(description="The hours between scheduled drills; 0 for none.")
    drills: list[DrillView]


class PlantedView(View):
    """A planted drill."""

    suspension_id: str
    item_id: str


class SeenCallView(View):
    """A call that was drawn after it was allowed or decided."""

    run_id: str
    seq: int = Field(description="The number of the event that allowed or decided it.")
    agent: str
    tool: str
    args: JsonObject = Field(description="Its arguments without secrets.")
    rule_id: str | None
    verdict: str = Field(description="`allowed` by the rules, or the verdict of the people.")
    decided_by: list[str] = Field(description="The people who decided it, who cannot take its second look.")
    at: Timestamp = Field(validation_alias="at_ms")
    suspension_id: str | None = Field(description="The suspension that people decided.")
    item_id: str | None


class WaitingCallView(SeenCallView):
    """A call that waits for a second look."""

    may_take: bool = Field(description="Whether you can take this second look.")


class SecondLookList(View):
    """The calls that have waited longest, those that you can take first."""

    calls: list[WaitingCallView]
    total: int = Field(description="How many calls wait.")


Scheme = Literal["hmac", "ed25519"]
"""How messages are signed: with a secret that both sides know, or with a key whose public half receivers have."""

EndpointState = Literal["unverified", "active", "disabled"]
"""An endpoint receives events once it returned a challenge, until it answers 410 or an admin disables it."""


class EndpointView(View):
    """An endpoint without its secret."""

    id: str
    url: str
    events: tuple[WebhookEvent, ...]
    owner: str | None = Field(description="The agent whose runs it is about; null for all runs.")
    description: str
    state: EndpointState
    reason: str = Field(description="Why it is disabled.")
    signature: Scheme
    public_key: str | None = Field(description="The key that verifies ed25519 signatures.")
    created_by: str
    created_at: Timestamp


class NewEndpointView(EndpointView):
    """An endpoint with its new secret."""

    secret: str | None = Field(description="The only copy, `whsec_…`; null for ed25519.")


class EndpointList(View):
    """Endpoints, the oldest first."""

    endpoints: list[EndpointView]


class FailureView(View):
    """A message that was refused and is not delivered."""

    id: str
    event_id: str = Field(validation_alias="message_id", description="The `webhook-id` that the receiver sees.")
    endpoint_id: str
    type: str
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    tries: int
    status: int = Field(description="The last HTTP status; 0 without a response.")
    reason: str
    last_try_at: Timestamp = Field(validation_alias="tried_at_ms")
    next_try_at: Timestamp | None = Field(description="Null once it was given up.")


class FailureList(View):
    """Failed messages, the latest first."""

    failures: list[FailureView]


class RedeliverView(View):
    """How many messages are sent again."""

    redelivered: int


class EventList(View):
    """The JSON Schema of each event."""

    events: dict[WebhookEvent, dict[str, Any]]


class SenderView(View):
    """A sender without its secrets."""

    id: str
    name: str
    reviewer: str
    path: str = Field(description="Where it sends its decisions.")
    created_by: str
    created_at: Timestamp
    revoked_at: Timestamp | None


class NewSenderView(SenderView):
    """A sender with its new secret."""

    secret: str = Field(description="The only copy, `whsec_…`.")


class SenderList(View):
    """Senders, the oldest first."""

    senders: list[SenderView]
