"""Shape suspensions for lists: a card for each item that waits, a row for each that no longer does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sayso.records.freezes import Freeze
from sayso.records.items import Item
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.transitions.item_states import ItemState, find_item_state
from service.web.content.sentences import (
    describe_fallback,
    describe_hold,
    describe_outcome,
    describe_quorum,
    describe_resemblance,
    find_hindrance,
    name_question,
)
from service.web.content.summaries import Summary, summarize


@dataclass(frozen=True)
class Card:
    """An item that waits, as one look in the inbox takes it in."""

    href: str
    tool: str
    title: str
    question: str
    summary: Summary
    reason: str
    run: str
    agent: str
    owner: str
    asked_at_ms: int
    deadline_at_ms: int
    hold: str
    fallback: str
    quorum: str
    hindrance: str
    resemblance: str


@dataclass(frozen=True)
class Row:
    """An item that is over."""

    href: str
    tool: str
    summary: Summary
    state: str
    told: str
    note: str
    agent: str
    at_ms: int


def item_href(record: SuspensionRecord, item: Item) -> str:
    """Return the address of an item's page."""
    return f"/items/{record.id}/{item.item_id}"


def make_cards(records: Iterable[SuspensionRecord], name: str, freezes: Sequence[Freeze], now_ms: int) -> list[Card]:
    """Return a card for every open item, the earliest deadline first, as this person should see it."""
    cards = [
        _card(record, item, name, describe_hold(record, item, freezes, now_ms))
        for record in records
        if record.status is Status.PENDING
        for item in record.items
        if item.open
    ]
    return sorted(cards, key=lambda card: card.deadline_at_ms)


def make_rows(record: SuspensionRecord) -> list[Row]:
    """Return a row for every item of a suspension that is decided or cancelled."""
    return [_row(record, item) for item in record.items if find_item_state(record, item) != ItemState.OPEN]


def _card(record: SuspensionRecord, item: Item, name: str, hold: str) -> Card:
    return Card(
        href=item_href(record, item),
        tool=item.tool.name,
        title=item.prompt.title or "",
        question=name_question(item),
        summary=summarize(item.tool.args),
        reason=item.prompt.reason or "",
        run=record.run.title,
        agent=record.run.agent,
        owner=record.run.owner,
        asked_at_ms=record.created_at_ms,
        deadline_at_ms=item.terms.deadline_at_ms,
        hold=hold,
        fallback=describe_fallback(record, item),
        quorum=describe_quorum(item),
        hindrance=find_hindrance(record, item, name) or "",
        resemblance=describe_resemblance(item),
    )


def _row(record: SuspensionRecord, item: Item) -> Row:
    outcome = item.outcome
    args = outcome.args if outcome is not None and outcome.args is not None else item.tool.args
    return Row(
        href=item_href(record, item),
        tool=item.tool.name,
        summary=summarize(args),
        state=find_item_state(record, item),
        told=describe_outcome(item) or "The run was cancelled",
        note=(outcome.message or "") if outcome is not None else "",
        agent=record.run.agent,
        at_ms=outcome.at_ms if outcome is not None else record.updated_at_ms,
    )
