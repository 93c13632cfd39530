"""Views of suspensions, their runs, leases, receipts and trails."""

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import AliasPath, ConfigDict, Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor
from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import OperatorNote, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.core.transitions.freezing import find_freeze
from sayso.core.transitions.states import RunState, find_item_state
from sayso.wire.items import DecisionView, HoldView, InquiryView, ItemView, OutcomeView
from sayso.wire.models import Later, Timestamp, View

CLAIMED_TITLE = "The title that the agent gave; it is not verified."


class ErasureView(View):
    """The erasure of a run's contents. Who decided what, when and by which rule remains."""

    by: Actor
    at: Timestamp = Field(validation_alias="at_ms")
    reason: str
    seq: int = Field(description="The number of the trail event that records it.")


class RunView(View):
    """A run."""

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
    owner: str = Field(description="The credential that started the run.")
    thread_id: str
    claimed_title: str = Field(validation_alias="title", description=CLAIMED_TITLE)
    tags: tuple[str, ...]
    status: RunStatus
    state: RunState = Field(
        description="The status, or `call_failed` if the run ended although an approved call failed."
    )
    suspension_id: str = Field(description="The latest suspension; it is pending while the run is suspended.")
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    updated_at: Timestamp = Field(validation_alias="updated_at_ms")
    result: JsonValue
    error: str | None
    erasure: ErasureView | None = Field(default=None, description="Who erased its contents; null if nobody did.")

    @property
    def ended(self) -> bool:
        """Whether the run does nothing more."""
        return self.status not in ("running", "suspended")


class WhoView(View):
    """Who is behind a run, as Sayso verified it when the run began."""

    owner: str | None = Field(description="The person who owns the requester's key.")
    groups: tuple[str, ...] = Field(description="The groups of the owner.")
    person: str | None = Field(description="The person for whom the agent acts, proven by a signed token.")
    person_name: str = Field(description="The person's display name in the token; empty if it has none.")
    issuer: str = Field(description="The issuer of the token; empty without one.")


class RunRefView(View):
    """The run of a suspension."""

    id: str
    agent: str
    owner: str
    thread_id: str
    claimed_title: str = Field(validation_alias="title", description=CLAIMED_TITLE)
    request_id: str | None
    tags: tuple[str, ...]
    context: JsonObject = Field(
        validation_alias="facts", description="Verified context: that of the registered agent and of the key."
    )
    claimed_context: JsonObject = Field(
        validation_alias="claimed", description="The context that the agent sent; it is not verified."
    )
    started_at: Timestamp = Field(validation_alias="started_at_ms")
    key_id: str | None = Field(description="The key that started the run; null for a session.")
    key_maker: Later[str] = Field(
        description="The person who made the key; empty for a session, or if nobody is known."
    )
    environment: Later[str] = Field(description="The `SAYSO_ENVIRONMENT` of the desk; empty without one.")
    who: WhoView | None = Field(description="Null if neither the owner of the key nor the person is known.")


class EventView(View):
    """A trail event; its hash includes the hash of the previous event.

    If its contents were erased, the hash is still that of the whole event. The event `erased_by` has, as `digest`, the
    SHA-256 of what is left of all events that it erased.
    """

    seq: int
    at: Timestamp = Field(validation_alias="at_ms")
    type: str
    data: JsonObject
    hash: str
    erased_by: int | None = Field(description="The event that records the erasure of its contents; null if whole.")


class UnreadableView(View):
    """A stored record that cannot be read: it is damaged, altered, or of a later version."""

    suspension_id: str
    run_id: str | None = Field(description="Its run, if that is known.")
    reason: str


class ReceiptView(View):
    """The progress of a suspension after its decision."""

    decided_at: Timestamp | None = Field(validation_alias="decided_at_ms")
    enqueued_at: Timestamp | None = Field(
        validation_alias="enqueued_at_ms",
        description="When it was last enqueued for the workers; `redrives` counts repetitions.",
    )
    job_id: str | None = Field(description="The job of the worker that leased it.")
    leased_at: Timestamp | None = Field(validation_alias="leased_at_ms")
    resumed_at: Timestamp | None = Field(validation_alias="resumed_at_ms")
    settled_at: Timestamp | None = Field(validation_alias="settled_at_ms")
    redrives: int
    tries: int
    error: str | None = Field(description="Why the suspension is decided but not resumed; null once it is.")


class LeaseView(View):
    """A worker's lease on the run."""

    holder: str
    attempt: int
    until: Timestamp = Field(validation_alias="until_ms")


class UsageView(View):
    """The calls of one model that a run has made, and their tokens."""

    model: str = Field(description="Empty if unknown.")
    input_tokens: int
    output_tokens: int
    model_calls: int | None = Field(description="Null for runs of earlier versions.")


class ProgressView(View):
    """What the run had done when its calls were judged."""

    tools: tuple[str, ...] | None = Field(description="The tools that ran before, once each; null if unknown.")
    usage: tuple[UsageView, ...] | None = Field(description="The model calls before; null if unknown.")


class NoteView(View):
    """What a person wrote to a running agent without deciding."""

    id: str
    by: Actor
    text: str
    at: Timestamp = Field(validation_alias="at_ms")
    delivered_at: Timestamp | None = Field(
        validation_alias="delivered_at_ms",
        description="When the model of one of Sayso's own agents got it; null for others, who read it here.",
    )
    undelivered: bool = Field(
        default=False, description="Whether the run ended before the next turn of that model, which never gets it."
    )


class NotePage(View):
    """The notes to the agent of a run, the first first."""

    notes: list[NoteView]


class SuspensionView(View):
    """A saved wait of a run."""

    id: str
    version: int
    status: Status
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    updated_at: Timestamp = Field(validation_alias="updated_at_ms")
    deadline_at: Timestamp | None = Field(
        validation_alias="deadline_at_ms", description="The earliest deadline of the open items."
    )
    run: RunRefView
    step: int
    mode: Literal["worker", "poll"] = Field(
        validation_alias=AliasPath("resume", "mode"), description="Who runs approved calls: a worker or the client."
    )
    items: tuple[ItemView, ...]
    on_deny: Literal["continue", "degrade", "fail"]
    progress: ProgressView | None = Field(description="Null if nothing is known of the run before.")
    receipt: ReceiptView
    lease: LeaseView | None
    end: RunEnd | None
    notes: Later[tuple[NoteView, ...]] = Field(description="Notes of people to the agent, of here or undelivered.")
    previous_id: str | None
    following_id: str | None
    erasure: ErasureView | None = Field(description="Who erased the contents of its run; null if nobody did.")

    @property
    def pending(self) -> bool:
        """Whether people have still to decide."""
        return self.status == "pending"


class SuspensionPage(View):
    """Pending suspensions by deadline, or decided ones, the latest first."""

    suspensions: list[SuspensionView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")
    unreadable: list[UnreadableView] = Field(description="Suspensions of this page that cannot be read or decided.")


class DecidedItem(View):
    """An item and its suspension after a decision."""

    suspension_id: str
    item_id: str
    status: Status = Field(description="The status of the suspension: pending until all items are decided.")
    outcome: OutcomeView | None = Field(description="Null until the quorum is met.")
    decision: DecisionView | None = Field(description="Your recorded decision.")
    undo_until: Timestamp | None = Field(
        default=None, description="The time until which you can undo it, when it takes effect; null if it has."
    )


class OpenInquiry(InquiryView):
    """A question that waits for its answer, and its item."""

    item_id: str


class InquiryPage(View):
    """The questions that wait for the requester."""

    status: Status = Field(description="The suspension's status; nothing can be answered unless it is pending.")
    inquiries: list[OpenInquiry]


class RunSuspensions(View):
    """All suspensions of one run, the start first."""

    suspensions: list[SuspensionView]
    cut: bool = Field(description="Whether earlier suspensions are missing here; `previous_id` leads to them.")
    unreadable: list[UnreadableView] = Field(
        description="The suspension that cannot be read; earlier ones cannot be found."
    )


class RunPage(View):
    """Runs, the newest first."""

    runs: list[RunView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")
    unreadable: list[UnreadableView] = Field(description="Runs of this page that cannot be read.")


class RedeemedItem(View):
    """A redeemed permit: run exactly this call now, then report its outcome."""

    suspension_id: str
    item_id: str
    tool: str
    args: JsonObject = Field(description="The decided arguments: unchanged, edited, or with the given value.")
    idempotency_key: str = Field(description="Pass it to the system that the call changes; it never varies.")
    attempt: int
    redeemed_at: Later[Timestamp]
    report_by: Timestamp


class HeadView(View):
    """The last event of a trail."""

    seq: int
    hash: str


class TrailPage(View):
    """Events of a run in order."""

    events: list[EventView]
    next_after: int = Field(description="`after` of the next page: the last sequence number on this page.")
    head: HeadView | None = Field(
        description="The end of the trail according to the run's record, read before these events; null if the record "
        "cannot be read."
    )
    partial: Later[bool] = Field(
        description="True for agents, who get no events that would tell of draws: people alone can verify the chain."
    )
    fault: str | None = Field(
        description="What is wrong with the trail: it was cut, extended or altered, or a call started without a "
        "decision. The first page names faults of the whole trail, and later ones those of their own events."
    )


class ExternalEventsResponse(View):
    """How many events were stored."""

    added: int = Field(description="The number of new events.")
    repeated: int = Field(description="The number of events that were already stored.")
    count: int = Field(description="The number of events that the run has now, from all sources.")


def show_suspension(record: SuspensionRecord, freezes: Sequence[Freeze], owner: str | None) -> SuspensionView:
    """Return the view of a suspension; with `owner`, that of an agent: its numbers, and nothing of draws."""
    view = SuspensionView.model_validate(record)
    numbers = owner is not None and owner == record.run.owner
    shown = (
        entry.model_copy(
            update={
                "state": find_item_state(record, item),
                "number": (numbers and item.secret_number) or None,
                "freeze": HoldView.model_validate(held) if (held := find_freeze(record, item, freezes)) else None,
            }
        )
        for entry, item in zip(view.items, record.items, strict=True)
    )
    items = tuple(shown if owner is None else map(_hide_draw, shown))
    return view.model_copy(update={"items": items, "notes": show_notes(record, record.notes)})


def show_notes(record: SuspensionRecord, notes: Iterable[OperatorNote]) -> tuple[NoteView, ...]:
    """Return the views of notes to the agent of a run, as of this suspension."""
    missed = record.pushes_notes and record.run_status.ended
    views = map(NoteView.model_validate, notes)
    return tuple(view.model_copy(update={"undelivered": missed and view.delivered_at is None}) for view in views)


def _hide_draw(item: ItemView) -> ItemView:
    """Return an item without what tells that it was drawn: its quorum, and who else has decided."""
    stages = tuple(stage.model_copy(update={"quorum": None}) for stage in item.terms.stages)
    terms = item.terms.model_copy(update={"quorum": None, "stages": stages})
    deciding = item.decisions[-1:] if item.outcome is not None else ()
    hidden = {"drawn": "", "voided": (), "undoable": None, "previews": (), "preview_request": None}
    hidden |= {"forwarded": None}
    return item.model_copy(update={"terms": terms, "decisions": deciding, **hidden})
