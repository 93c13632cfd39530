"""The items of a run as rows: those that are open as in the inbox, the others with their state and outcome."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from sayso.core.records.decisions import Actor
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.rendering.renderers import render_call
from sayso.core.rendering.views import View
from sayso.core.sentences.outcomes import describe_outcome
from sayso.core.transitions.states import find_item_state
from service.operations.masking import Definitions, mask_record
from service.web.content.cards import Card, item_href, make_cards
from service.web.content.headlines import Headline, make_headline


@dataclass(frozen=True)
class ClosedRow:
    """A decided or cancelled item; `subagent` is empty for the agent itself, `erased` says that its call is gone."""

    row_id: str
    href: str
    headline: Headline
    view: View
    state: str
    outcome: str
    subagent: str
    erased: bool


@dataclass(frozen=True)
class RunRow:
    """An item of a run: its card if it is open, else its closed row."""

    card: Card | None
    closed: ClosedRow | None


Suspended = tuple[SuspensionRecord, list[RunRow]]


def list_rows(
    records: Sequence[SuspensionRecord],
    reviewer: Actor,
    freezes: Sequence[Freeze],
    now_ms: int,
    definitions: Definitions,
) -> list[Suspended]:
    """Return the suspensions that have items, each with the rows of its items in their order."""
    cards = {card.row_id: card for card in make_cards(records, reviewer, freezes, now_ms, definitions=definitions)}
    return [(record, _list_rows(record, cards, definitions)) for record in records if record.items]


def render_result(result: JsonValue) -> View | None:
    """Return the view of a run's result by its shape; None for plain text, or without a result."""
    if result is None or isinstance(result, str):
        return None
    if isinstance(result, dict) and [*result] == ["text"] and isinstance(result["text"], str):
        return None
    return render_call("result", result if isinstance(result, dict) else {"result": result})


def _list_rows(record: SuspensionRecord, cards: dict[str, Card], definitions: Definitions) -> list[RunRow]:
    rows = []
    for stored, item in zip(record.items, mask_record(record).items, strict=True):
        card = cards.get(f"{record.id}-{item.item_id}")
        closed = _close(record, item, definitions, describe_outcome(stored)) if card is None else None
        rows.append(RunRow(card, closed))
    return rows


def _close(record: SuspensionRecord, item: Item, definitions: Definitions, outcome: str) -> ClosedRow:
    definition = definitions.get(item.tool.definition or "")
    view = render_call(item.tool.name, item.tool.args, definition.parameters if definition is not None else None)
    return ClosedRow(
        row_id=f"{record.id}-{item.item_id}",
        href=item_href(record, item),
        headline=make_headline(item, view),
        view=view,
        state=find_item_state(record, item),
        outcome=outcome,
        subagent=item.subagent or "",
        erased=item.erasure is not None,
    )
