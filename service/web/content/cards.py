"""Items in lists: a card for each open item, a row for each decided or cancelled one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sayso.records.decisions import Actor
from sayso.records.freezes import Freeze
from sayso.records.items import Item
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.rendering.table import render_call
from sayso.rendering.views import View
from sayso.sentences import deadlines
from sayso.sentences import items as sentences
from sayso.sentences.deliveries import describe_silence
from sayso.sentences.outcomes import describe_outcome
from sayso.text.summaries import Summary, summarize
from sayso.transitions.deciding import find_item
from sayso.transitions.item_states import ItemState, find_item_state
from service.operations.masking import NO_DEFINITIONS, Definitions, mask_record


@dataclass(frozen=True)
class Card:
    """An open item in the inbox."""

    record: SuspensionRecord
    item: Item
    href: str
    need: str
    view: View
    summary: Summary
    hold: str
    fallback: str
    quorum: str
    ineligibility: str
    resemblance: str
    silence: str

    @property
    def row_id(self) -> str:
        """The id of the card's element in the inbox."""
        return f"{self.record.id}-{self.item.item_id}"


@dataclass(frozen=True)
class Closed:
    """An item that left the inbox."""

    row_id: str
    tool: str
    outcome: str


@dataclass(frozen=True)
class Row:
    """A decided or cancelled item."""

    href: str
    tool: str
    summary: Summary
    state: str
    outcome: str
    note: str
    agent: str
    at_ms: int


def item_href(record: SuspensionRecord, item: Item) -> str:
    """Return the path of an item's page."""
    return f"/items/{record.id}/{item.item_id}"


def make_cards(
    records: Iterable[SuspensionRecord],
    reviewer: Actor,
    freezes: Sequence[Freeze],
    now_ms: int,
    definitions: Definitions = NO_DEFINITIONS,
) -> list[Card]:
    """Return a card for every open item as the reviewer sees it, sorted by deadline."""
    cards = [
        _card(record, item, reviewer, deadlines.describe_hold(record, item, freezes, now_ms), definitions)
        for record in records
        if record.status is Status.PENDING
        for item in record.items
        if item.open
    ]
    return sorted(cards, key=lambda card: card.item.terms.deadline_at_ms)


def list_closed(records: Iterable[SuspensionRecord]) -> list[Closed]:
    """Return the items of the records that no longer wait for a decision."""
    return [
        Closed(f"{record.id}-{item.item_id}", item.tool.name, describe_outcome(item) or "The run was cancelled")
        for record in records
        for item in record.items
        if not item.open or record.status is not Status.PENDING
    ]


def make_rows(record: SuspensionRecord) -> list[Row]:
    """Return a row for every decided or cancelled item of a suspension."""
    record = mask_record(record)
    return [_row(record, item) for item in record.items if find_item_state(record, item) != ItemState.OPEN]


def _card(record: SuspensionRecord, item: Item, reviewer: Actor, hold: str, definitions: Definitions) -> Card:
    masked = mask_record(record)
    shown = find_item(masked, item.item_id)
    definition = definitions.get(item.tool.definition or "")
    schema = definition.parameters if definition is not None else None
    return Card(
        record=masked,
        item=shown,
        href=item_href(record, item),
        need=sentences.describe_need(item),
        view=render_call(item.tool.name, shown.tool.args, schema),
        summary=summarize(shown.tool.args),
        hold=hold,
        fallback=deadlines.describe_fallback(record, item),
        quorum=sentences.describe_quorum(item),
        ineligibility=sentences.describe_ineligibility(record, item, reviewer),
        resemblance=sentences.describe_resemblance(item.resembles),
        silence=describe_silence(item.deliveries, live=True),
    )


def _row(record: SuspensionRecord, item: Item) -> Row:
    outcome = item.outcome
    args = outcome.args if outcome is not None and outcome.args is not None else item.tool.args
    return Row(
        href=item_href(record, item),
        tool=item.tool.name,
        summary=summarize(args),
        state=find_item_state(record, item),
        outcome=describe_outcome(item) or "The run was cancelled",
        note=(outcome.message or "") if outcome is not None else "",
        agent=record.run.agent,
        at_ms=outcome.at_ms if outcome is not None else record.updated_at_ms,
    )
