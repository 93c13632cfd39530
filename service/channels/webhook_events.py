"""The events that endpoints receive: what each says of an item or a run, with secrets masked."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import EarlierDenial
from sayso.core.records.events import WebhookEvent
from sayso.core.records.items import Item
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.core.text.redaction import Redacted
from service.channels.cards import Card, build_card, item_link
from service.core.operations.masking import Definitions, collect_secrets
from service.core.store.announcements import Announcement


class Part(BaseModel):
    """Base class for the parts of an event."""

    model_config = ConfigDict(frozen=True)


class EventRun(Part):
    """The run of an event."""

    id: str
    agent: str
    owner: str = Field(description="The name of the key that started it.")
    title: str = Field(description="From the agent, not checked; secrets are masked.")
    link: str = Field(description="The run's page, which requires a sign-in.")


class EventDenial(Part):
    """The last denial of the same call by a person, in the same run or thread, or of the same agent."""

    by: str
    at: AwareDatetime
    message: str = Field(description="The reason that the person gave; secrets are masked.")
    text: str = Field(description="One sentence for people: who denied the call, when and where.")
    link: str = Field(description="The page of the denied item, which requires a sign-in.")


class EventItem(Part):
    """The item of an event."""

    denied_before: EventDenial | None = Field(
        default=None, description="The last denial of the same call; null if there is none or the item is closed."
    )

    id: str
    suspension_id: str
    kind: str = Field(description="`approval` or `input`.")
    tool: str
    args: JsonObject = Field(description="The arguments that will run or ran, with secrets masked.")
    masked: bool = Field(description="Whether a secret was masked. Then no digest is sent.")
    digest: str | None = Field(description="Required to approve the call; null if a secret was masked.")
    headline: str
    question: str
    reason: str
    rule: str | None
    reviewers: tuple[str, ...] = Field(description="Empty for every reviewer.")
    answers: tuple[str, ...] = Field(description="What reviewers can answer.")
    deadline: AwareDatetime
    link: str = Field(description="The item's page, which requires a sign-in.")


class EventOutcome(Part):
    """How an item was decided."""

    verdict: str = Field(description="`approved`, `denied`, `answered`, `failed` or `reported`.")
    by: str = Field(description="The reviewer, or `timeout`.")
    channel: str
    at: AwareDatetime
    message: str | None


class ItemCreated(Part):
    """An item waits for a decision. It is created again if edits need a new decision, and when a stage begins."""

    run: EventRun
    item: EventItem


class ItemDecided(ItemCreated):
    """An item was decided by people, or by its fallback at the deadline."""

    outcome: EventOutcome


class ItemEscalated(ItemCreated):
    """More reviewers are asked, because nobody decided or no card reached anybody."""

    step: int = Field(description="The number of escalation steps so far.")


class ItemWithdrawn(ItemCreated):
    """An item was closed without a decision: its run was cancelled, or another item's decision was enough."""


class SuspendedItem(Part):
    """An item of a suspended run."""

    id: str
    tool: str
    link: str


class RunSuspended(Part):
    """A run waits for decisions."""

    run: EventRun
    suspension_id: str
    items: tuple[SuspendedItem, ...]


class RunResumed(Part):
    """A run continues after its items were decided."""

    run: EventRun
    suspension_id: str


class RunFinished(Part):
    """A run ended. Its result is on its page only, because it may contain secrets."""

    run: EventRun
    status: Literal["completed", "degraded", "failed", "cancelled"]


DATA: Mapping[WebhookEvent, type[Part]] = {
    WebhookEvent.ITEM_CREATED: ItemCreated,
    WebhookEvent.ITEM_DECIDED: ItemDecided,
    WebhookEvent.ITEM_ESCALATED: ItemEscalated,
    WebhookEvent.ITEM_WITHDRAWN: ItemWithdrawn,
    WebhookEvent.RUN_SUSPENDED: RunSuspended,
    WebhookEvent.RUN_RESUMED: RunResumed,
    WebhookEvent.RUN_FINISHED: RunFinished,
}
"""The model of each event's `data`."""


class Envelope(BaseModel):
    """An event as it is sent; `data` differs by type."""

    type: WebhookEvent
    timestamp: str
    data: JsonValue


def describe_schema(event: WebhookEvent) -> dict[str, Any]:
    """Return the JSON Schema of an event as it is sent."""
    data = DATA[event].model_json_schema(mode="serialization")
    definitions = data.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": event.value,
        "description": (DATA[event].__doc__ or "").strip(),
        "type": "object",
        "properties": {
            "type": {"const": event.value},
            "timestamp": {"type": "string", "format": "date-time"},
            "data": data,
        },
        "required": ["type", "timestamp", "data"],
        "$defs": definitions,
    }


def build_event(
    announcement: Announcement,
    record: SuspensionRecord,
    definitions: Definitions,
    public_url: str,
    denied: EarlierDenial | None = None,
) -> str | None:
    """Return the event's body, or None if its item was replaced meanwhile."""
    data = _build_data(announcement, record, definitions, public_url, denied)
    if data is None:
        return None
    timestamp = iso_utc(announcement.at_ms)
    envelope = Envelope(type=announcement.type, timestamp=timestamp, data=data.model_dump(mode="json"))
    return envelope.model_dump_json()


def _build_data(
    announcement: Announcement,
    record: SuspensionRecord,
    definitions: Definitions,
    public_url: str,
    denied: EarlierDenial | None,
) -> Part | None:
    secrets = collect_secrets([record], definitions)
    of, title = record.run, secrets.scrub(record.run.title)
    run = EventRun(id=of.id, agent=of.agent, owner=of.owner, title=title, link=f"{public_url}/runs/{of.id}")
    if announcement.item_id:
        item = find_announced(announcement, record)
        if item is None:
            return None
        card = build_card(record, item, definitions.get(item.tool.definition or ""), public_url, denied)
        described = _describe_item(item, card, secrets)
        if denied is not None:
            denial = EventDenial.model_validate(
                {
                    "by": denied.by,
                    "at": iso_utc(denied.at_ms),
                    "message": secrets.scrub(denied.message),
                    "text": card.warnings[0],
                    "link": item_link(public_url, *denied.place),
                }
            )
            described = described.model_copy(update={"denied_before": denial})
        return _describe_item_event(announcement.type, item, described, run, secrets)
    if announcement.type is WebhookEvent.RUN_SUSPENDED:
        items = tuple(
            SuspendedItem(id=item.item_id, tool=item.tool.name, link=item_link(public_url, record.id, item.item_id))
            for item in record.items
        )
        return RunSuspended(run=run, suspension_id=record.id, items=items)
    if announcement.type is WebhookEvent.RUN_RESUMED:
        return RunResumed(run=run, suspension_id=record.id)
    status = record.run_status
    if status in (RunStatus.RUNNING, RunStatus.SUSPENDED):
        return None  # an admin has retried the run meanwhile
    return RunFinished.model_validate({"run": run, "status": status.value})


def find_announced(announcement: Announcement, record: SuspensionRecord) -> Item | None:
    """Return the item of an event; None for an event of a run, and if the item was replaced meanwhile."""
    return next((item for item in record.items if item.item_id == announcement.item_id), None)


def _describe_item_event(
    event: WebhookEvent, item: Item, described: EventItem, run: EventRun, secrets: Redacted
) -> Part | None:
    outcome = item.outcome
    if event is WebhookEvent.ITEM_DECIDED:
        if outcome is None:
            return None
        decided = EventOutcome.model_validate(
            {
                "verdict": outcome.verdict.value,
                "by": outcome.by.id,
                "channel": outcome.by.channel,
                "at": iso_utc(outcome.at_ms),
                "message": secrets.scrub(outcome.message) if outcome.message else None,
            }
        )
        return ItemDecided(run=run, item=described, outcome=decided)
    if event is WebhookEvent.ITEM_ESCALATED:
        return ItemEscalated(run=run, item=described, step=item.escalated)
    return DATA[event].model_validate({"run": run, "item": described})


def _describe_item(item: Item, card: Card, secrets: Redacted) -> EventItem:
    return EventItem.model_validate(
        {
            "id": item.item_id,
            "suspension_id": card.suspension_id,
            "kind": item.kind.value,
            "tool": item.tool.name,
            "args": card.args,
            "masked": card.masked,
            "digest": None if card.masked else item.digest,
            "headline": card.headline,
            "question": secrets.scrub(item.prompt.title or ""),
            "reason": secrets.scrub(item.prompt.reason or ""),
            "rule": item.terms.rule_id,
            "reviewers": item.terms.reviewers,
            "answers": [answer.value for answer in item.allowed],
            "deadline": iso_utc(item.terms.deadline_at_ms),
            "link": card.link,
        }
    )
