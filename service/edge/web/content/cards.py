"""Items in lists: a card with headline and flags for each open item, a row for each that is decided or cancelled."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from gettext import NullTranslations
from hashlib import sha256
from statistics import median_low
from typing import NamedTuple, Protocol, TypeVar

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS
from sayso.core.precedents import find_unusual
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Item, find_claim
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.terms import FallbackAction
from sayso.core.rendering.money import is_amount, names_minor_unit
from sayso.core.rendering.renderers import name_flags, render_call
from sayso.core.rendering.views import Flag, View
from sayso.core.sentences import deadlines
from sayso.core.sentences import items as sentences
from sayso.core.sentences.deadlines import describe_span
from sayso.core.sentences.deliveries import describe_silence, quote_forward
from sayso.core.sentences.outcomes import describe_outcome
from sayso.core.text.language import _, find_spoken, mark
from sayso.core.text.summaries import Leaf, Summary, list_values, summarize
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.inquiring import may_confirm
from sayso.core.transitions.quorum import needs_confirmation
from sayso.core.transitions.states import ItemState, find_item_state
from service.core.concurrency import Breaks
from service.core.operations.masking import NO_DEFINITIONS, Definitions, mask_record
from service.core.operations.queries import EVERYTHING, Query
from service.core.store.precedents import NOTHING_EARLIER, Earlier, kind_of
from service.edge.web.content.kinds import find_alike
from service.edge.web.content.trees import name_currencies, part_path

_IN_HEADLINE = 2
_MOST_PRICED = 200  # values that are read for a currency, so that a list of large calls costs no more


class Headline(NamedTuple):
    """The tool with the first arguments, the arguments of the second line, and the number of the others."""

    tool: str
    first: tuple[Leaf, ...]
    rest: tuple[Leaf, ...]
    hidden_values: int
    minor: bool = False
    """Whether its amounts may be in cents; without amounts it is not known."""


def make_headline(item: Item, view: View, schema: JsonObject | None = None) -> Headline:
    """Return the headline of an item whose secrets are masked, without arguments that the view's headline names."""
    summary = summarize(item.tool.args)
    currencies, minor = _find_currencies(summary, item.tool.args, schema)
    priced = (replace(leaf, currency=currencies.get(leaf.path, "")) for leaf in summary.shown)
    shown = tuple(
        leaf
        for leaf in priced
        if view.renderer == "tree"
        or not (not leaf.cut and bool(re.search(rf"(?<!\w){re.escape(leaf.text)}(?!\w)", view.headline)))
    )
    return Headline(item.tool.name, shown[:_IN_HEADLINE], shown[_IN_HEADLINE:], summary.hidden_values, minor)


def _find_currencies(summary: Summary, args: JsonObject, schema: JsonObject | None) -> tuple[dict[str, str], bool]:
    """Return the currencies of the amounts that a call names, by path, and whether they may be in cents."""
    values = list_values(args) if args and summary.hidden_values <= _MOST_PRICED else summary.shown
    if not any(leaf.literal and is_amount(part_path(leaf.path)[1], leaf.text) for leaf in values):
        return {}, False
    minor = schema is not None and names_minor_unit(schema)
    return {leaf.path: leaf.currency for leaf in name_currencies(values, minor=minor)}, minor


def list_flags(item: Item, view: View, reviewer: Actor, *, held: bool) -> tuple[str, ...]:
    """Return the two most severe flags of an open item, as the reviewer sees it."""
    return name_flags(
        item.tool.name,
        view,
        doubt=item.doubt is not None,
        resembles=bool(item.resembles),
        unattended=item.terms.fallback.action is FallbackAction.APPROVE,
        alone=item.terms.reviewers == (reviewer.id,),
        held=held,
    )


SOON_MS = 600_000

SECTIONS = (
    ("soon", mark("Due in 10 min")),
    ("today", mark("Today")),
    ("later", mark("Later")),
    ("others", mark("For others")),
)
"""The sections of the inbox in their order: each with its name in the page and its heading."""


class Card(NamedTuple):
    """An open item in the inbox."""

    record: SuspensionRecord
    item: Item
    href: str
    section: str
    headline: Headline
    view: View
    flags: tuple[str, ...]
    hold: str
    wanted: str
    quorum: str
    claim: str
    ineligibility: str
    silence: str
    forwarded: str
    unusual: tuple[Flag, ...] = ()
    alike: str = ""

    @property
    def row_id(self) -> str:
        return f"{self.record.id}-{self.item.item_id}"

    @property
    def due_at_ms(self) -> int:
        return self.item.terms.deadline_at_ms


class Listed(Protocol):
    """A card, or several as one row of the inbox."""

    @property
    def section(self) -> str: ...
    @property
    def due_at_ms(self) -> int: ...


Sectioned = TypeVar("Sectioned", bound=Listed)


class Closed(NamedTuple):
    """An item that left the inbox."""

    row_id: str
    tool: str
    outcome: str


@dataclass(frozen=True)
class Row:
    """A decided or cancelled item; `item` has the decided arguments, and `state` is the worst that is known."""

    href: str
    item: Item
    state: str
    outcome: str
    note: str
    agent: str
    at_ms: int
    schema: JsonObject | None = None

    @property
    def tool(self) -> str:
        return self.item.tool.name

    @cached_property
    def headline(self) -> Headline:
        return make_headline(self.item, self.view, self.schema)

    @cached_property
    def view(self) -> View:
        return render_call(self.tool, self.item.tool.args, self.schema)

    @property
    def look_ms(self) -> int | None:
        """The look before the last decision, if it was measured."""
        shown = self.item.decisions[-1].shown if self.item.decisions else None
        return shown.look_ms if shown is not None else None


def item_href(record: SuspensionRecord, item: Item) -> str:
    """Return the path of an item's page."""
    return f"/items/{record.id}/{item.item_id}"


def make_cards(
    records: Iterable[SuspensionRecord],
    reviewer: Actor,
    freezes: Sequence[Freeze],
    now_ms: int,
    query: Query = EVERYTHING,
    definitions: Definitions = NO_DEFINITIONS,
    earlier: Earlier = NOTHING_EARLIER,
) -> list[Card]:
    """Return a card for every open item that fits the search, as the reviewer sees it, sorted by deadline."""
    pending = [record for record in records if record.status is Status.PENDING]
    facts = (reviewer, freezes, now_ms, query, definitions, earlier)
    cards: list[Card] = []
    breaks = Breaks()
    for record in pending:
        for card in _make_cards(record, *facts):
            cards.append(card)
            breaks.take()
    return sorted(cards, key=lambda card: card.due_at_ms)


def group_cards(cards: Sequence[Sectioned]) -> list[tuple[str, str, list[Sectioned]]]:
    """Return each section's name and heading with its cards, also of sections without cards."""
    return [(name, heading, [card for card in cards if card.section == name]) for name, heading in SECTIONS]


def list_closed(records: Iterable[SuspensionRecord]) -> list[Closed]:
    """Return the items of the records that no longer wait for a decision."""
    return [
        Closed(f"{record.id}-{item.item_id}", item.tool.name, describe_outcome(item) or _("The run was cancelled"))
        for record in records
        for item in record.items
        if not item.open or record.status is not Status.PENDING
    ]


def make_rows(record: SuspensionRecord, definitions: Definitions = NO_DEFINITIONS) -> list[Row]:
    """Return a row for every decided or cancelled item of a suspension."""
    masked, rows = mask_record(record), list[Row]()
    for stored, item in zip(record.items, masked.items, strict=True):
        if find_item_state(record, stored) == ItemState.OPEN:
            continue
        outcome, decided = item.outcome, item
        if outcome is not None and outcome.args is not None:
            decided = item.model_copy(update={"tool": item.tool.model_copy(update={"args": outcome.args})})
        definition = definitions.get(item.tool.definition or "")
        row = Row(
            href=item_href(masked, item),
            item=decided,
            state=find_item_state(masked, item),
            outcome=describe_outcome(stored) or _("The run was cancelled"),
            note=(outcome.message or "") if outcome is not None and outcome.by.kind is not ActorKind.TIMEOUT else "",
            agent=masked.run.agent,
            at_ms=outcome.at_ms if outcome is not None else masked.updated_at_ms,
            schema=definition.parameters if definition is not None else None,
        )
        rows.append(row)
    return rows


def _make_cards(
    record: SuspensionRecord,
    reviewer: Actor,
    freezes: Sequence[Freeze],
    now_ms: int,
    query: Query,
    definitions: Definitions,
    earlier: Earlier,
) -> Iterator[Card]:
    masked = mask_record(record)
    for item in record.items:
        shown = find_item(masked, item.item_id)
        confirms = needs_confirmation(item) and may_confirm(record, item, reviewer)
        ineligibility = "" if confirms else sentences.describe_ineligibility(record, item, reviewer)
        if not item.open or not query.matches(masked, shown, mine=not ineligibility):
            continue
        if query.due_within_ms is not None and item.terms.deadline_at_ms > now_ms + query.due_within_ms:
            continue
        definition = definitions.get(item.tool.definition or "")
        schema = definition.parameters if definition is not None else None
        headline, view = _arrange(shown, schema)
        unusual = tuple(find_unusual(shown.tool.args, earlier.get(kind_of(record, item.tool.name), ())))
        if query.unusual and not unusual:
            continue
        view = replace(view, flags=(*view.flags, *unusual))
        hold = deadlines.describe_hold(record, item, freezes, now_ms)
        yield Card(
            record=masked,
            item=shown,
            href=item_href(record, item),
            section="others" if ineligibility else _find_section(item.terms.deadline_at_ms, now_ms),
            headline=headline,
            view=view,
            flags=list_flags(shown, view, reviewer, held=bool(hold)),
            hold=hold,
            wanted=_("wants: your confirmation") if confirms else sentences.describe_wanted(shown),
            quorum=sentences.count_quorum(item),
            claim=_describe_claim(item, reviewer, now_ms),
            ineligibility=ineligibility,
            silence=describe_silence(item.deliveries, live=True),
            forwarded=quote_forward(shown, reviewer),
            unusual=unusual,
            alike="" if ineligibility or confirms or item.forwarded else find_alike(record, item, view, definition),
        )


_Arranged = tuple[Headline, View]
_ARRANGED: OrderedDict[tuple[bytes, bool, NullTranslations], _Arranged] = OrderedDict()
"""Calls by the hash of their content, which names their definition: how cards show them follows from it."""


def _arrange(item: Item, schema: JsonObject | None) -> _Arranged:
    """Return how cards show the item's call, for every open inbox after a change; its secrets are masked."""
    key = sha256(item.tool.model_dump_json().encode()).digest(), schema is not None, find_spoken()
    layout = _ARRANGED.get(key)
    if layout is None:
        view = render_call(item.tool.name, item.tool.args, schema)
        layout = make_headline(item, view, schema), replace(view, notable=(), body=(), rest=())
        _ARRANGED[key] = layout
        if len(_ARRANGED) > 500:
            _ARRANGED.popitem(last=False)
    return layout


def _describe_claim(item: Item, reviewer: Actor, now_ms: int) -> str:
    claim = find_claim(item.claim, now_ms)
    if claim is None:
        return ""
    return _("you handle it") if claim.by.id == reviewer.id else _("%(who)s handles it", who=claim.by.id)


def _find_section(due_at_ms: int, now_ms: int) -> str:
    if due_at_ms - now_ms < SOON_MS:
        return "soon"
    return "today" if due_at_ms // DAY_MS == now_ms // DAY_MS else "later"


def describe_finished(records: Iterable[SuspensionRecord], now_ms: int, *, cut: bool) -> str:
    """Return how many items people decided since midnight UTC and how long they waited; empty for none."""
    midnight_ms = now_ms // DAY_MS * DAY_MS
    waits = [
        item.outcome.at_ms - record.created_at_ms
        for record in records
        for item in record.items
        if item.outcome is not None and item.outcome.by.kind is ActorKind.HUMAN and item.outcome.at_ms >= midnight_ms
    ]
    if not waits:
        return ""
    median = describe_span(median_low(waits))
    return _("%(count)s decided today, median %(span)s.", count=f"{len(waits)}{'+' if cut else ''}", span=median)
