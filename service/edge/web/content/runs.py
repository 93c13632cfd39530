"""The calls of a run as a tree of the model's turns, its items as rows, and external events in its timeline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, Outcome
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.rendering.renderers import render_call
from sayso.core.rendering.views import View, shorten
from sayso.core.sentences.outcomes import describe_outcome
from sayso.core.text.language import _
from sayso.core.text.redaction import Redacted
from sayso.core.text.summaries import write_pretty
from sayso.core.transitions.states import find_item_state
from sayso.timeline.external_events import Kind
from sayso.timeline.merging import SOURCE_FORMATS, Entry, SourceFormat, build_entries, merge
from service.core.operations.masking import Definitions, mask_record
from service.core.store.runs.external_events import ExternalEvents
from service.edge.web.content.cards import Card, Headline, item_href, make_cards, make_headline
from service.edge.web.content.facts import Facts
from service.edge.web.content.timeline import Line, describe_trail


class TreeCall(NamedTuple):
    """One call; a call that nobody was asked about has no `href`. `subagent` is empty for the agent itself."""

    tool: str
    state: str
    href: str = ""
    subagent: str = ""


@dataclass
class Turn:
    """One turn of the model: its text, which is a claim, and its calls."""

    text: str = ""
    calls: list[TreeCall] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    """Where each call that has no item yet stands in `calls`, by its index."""

    def put(self, index: int, call: TreeCall) -> None:
        """Add a call, or replace the one with this index, whose state is now known."""
        place = self.places.pop(index, len(self.calls))
        self.calls[place : place + 1] = [call]
        if not call.href:
            self.places[index] = place


def list_turns(trail: Iterable[TrailEntry], records: Sequence[SuspensionRecord]) -> list[Turn]:
    """Return the turns in order. Calls that were suspended have the state of their item."""
    by_id = {record.id: record for record in records}
    turns: list[Turn] = []
    begun = False  # a turn, which the next suspension belongs to
    for entry in trail:
        facts = Facts(entry.data)
        if entry.type == EventType.LLM_COMPLETED:
            turns.append(Turn(shorten(facts.text("text"), 200)))
            begun = True
        elif entry.type == EventType.POLICY_DECISION and isinstance(facts.value("index"), int):
            if not begun:
                turns.append(Turn())
                begun = True
            state = "denied" if facts.text("action") == "deny" else "running"
            turns[-1].put(facts.number("index"), TreeCall(facts.text("tool_name", _("A call")), state))
        elif entry.type == EventType.TOOL_COMPLETED and turns:
            _complete(turns[-1], facts)
        elif entry.type == EventType.RUN_PAUSED:
            if not begun:
                turns.append(Turn())
            _suspend(turns[-1], by_id.get(facts.object("payload").text("suspension_id")), facts.object("payload"))
            begun = False
    return [turn for turn in turns if turn.text or turn.calls]


def mask_turns(turns: Iterable[Turn], secrets: Redacted) -> list[Turn]:
    """Return the turns with secrets masked in the model's text."""
    return [replace(turn, text=secrets.scrub(turn.text)) for turn in turns] if secrets.masked else [*turns]


def _complete(turn: Turn, facts: Facts) -> None:
    place = turn.places.get(facts.number("index"))
    if place is not None and turn.calls[place].tool == facts.text("tool_name", _("A call")):
        denied = turn.calls[place].state == "denied"
        state = "denied" if denied else "completed" if facts.flag("success") else "failed"
        turn.put(facts.number("index"), TreeCall(turn.calls[place].tool, state))


def _suspend(turn: Turn, record: SuspensionRecord | None, payload: Facts) -> None:
    """Put the items of the suspension in place of their calls; a record that is not read is named by the trail."""
    if record is None:
        turn.calls += [TreeCall(row.text("tool_name", _("A call")), "suspended") for row in payload.objects("items")]
        return
    for item in record.items:
        state, subagent = find_item_state(record, item), item.subagent or ""
        turn.put(item.index, TreeCall(item.tool.name, state, item_href(record, item), subagent))


class ClosedRow(NamedTuple):
    """A decided or cancelled item; `subagent` is empty for the agent itself, `erased` says that its call is gone."""

    row_id: str
    href: str
    headline: Headline
    view: View
    state: str
    outcome: str
    decided: Outcome | None
    subagent: str
    erased: bool


class RunRow(NamedTuple):
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
    schema = definition.parameters if definition is not None else None
    view = render_call(item.tool.name, item.tool.args, schema)
    return ClosedRow(
        row_id=f"{record.id}-{item.item_id}",
        href=item_href(record, item),
        headline=make_headline(item, view, schema),
        view=view,
        state=find_item_state(record, item),
        outcome=outcome,
        decided=item.outcome,
        subagent=item.subagent or "",
        erased=item.erasure is not None,
    )


MAX_EXTERNAL_EVENTS = 1_000  # a page shows the latest external events only; the API has all of them
_MAX_LISTS = 20  # the latest results that a page shows as tables, too
_MAX_DATA_CHARS = 8_000

_TONES = {
    Kind.WAIT: "wait",
    Kind.WARNING: "wait",
    Kind.PROBLEM: "bad",
    Kind.END: "good",
    Kind.QUIET: "quiet",
    Kind.REASONING: "quiet",
}


class ExternalEntries(NamedTuple):
    """The latest external entries, and whether earlier ones are omitted."""

    entries: list[Entry]
    cut: bool


async def read_external_events(
    external_events: ExternalEvents, run_id: str, until_ms: int | None = None
) -> ExternalEntries:
    """Return the run's latest external entries, up to `until_ms` if given."""
    entries = build_entries(await external_events.read_all(run_id))
    if until_ms is not None:
        entries = [entry for entry in entries if entry.at_ms <= until_ms]
    entries.sort(key=lambda entry: entry.at_ms)
    return ExternalEntries(entries[-MAX_EXTERNAL_EVENTS:], len(entries) > MAX_EXTERNAL_EVENTS)


def describe_both(trail: Sequence[TrailEntry], entries: Sequence[Entry]) -> list[Line]:
    """Return a line for every trail event and every external entry, in order."""
    trail_lines = iter(describe_trail(trail))
    merged = merge(trail, entries)
    lines = [next(trail_lines) if isinstance(entry, TrailEntry) else describe_entry(entry) for entry in merged]
    with_lists = [place for place, line in enumerate(lines) if line.lists is not None]
    for place in with_lists[:-_MAX_LISTS]:
        lines[place] = lines[place]._replace(lists=None)
    return lines


def describe_entry(entry: Entry) -> Line:
    """Return the line of an external entry."""
    text, tone, note = _describe(entry)
    data = _show_data(entry)
    label = SOURCE_FORMATS[SourceFormat(entry.source_format)].label
    return Line(
        seq=entry.first_seq,
        at_ms=entry.at_ms,
        kind=entry.kind,
        tone=tone,
        text=_cut(text, 300),
        note=_cut(note),
        data=_cut(data),
        source=label if entry.source == "agent" else f"{label}, {entry.source}",
        depth=min(entry.depth, 4),
        lists=_find_lists(entry.output) if len(data) <= _MAX_DATA_CHARS else None,
        link=entry.link,
    )


def _find_lists(output: JsonValue) -> JsonObject | None:
    """Return the lists of objects of a result, such as mails or accounts, by their names."""
    members = output if isinstance(output, dict) else {"result": output}
    lists: JsonObject = {name: value for name, value in members.items() if _is_list_of_objects(value)}
    return lists or None


def _is_list_of_objects(value: JsonValue) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and row for row in value)


def _describe(entry: Entry) -> tuple[str, str, str]:
    speaker = entry.who or _("The agent")
    said = "\n".join(text for text in (entry.text, entry.note) if text)
    if entry.kind is Kind.TEXT:
        return _("%(who)s said", who=speaker), "plain", said
    if entry.kind is Kind.REASONING:
        return _("%(who)s reasoned", who=speaker), "quiet", said
    if entry.kind in (Kind.CALL, Kind.RESULT):
        name = entry.name or (_("A call") if entry.kind is Kind.CALL else _("An unknown call"))
        note = "\n".join(text for text in (entry.note, entry.text) if text)
        if not entry.ended:
            return _("%(call)s was requested; no result was reported", call=name), "wait", note
        if entry.ok is False:
            return _("%(call)s failed", call=name), "bad", note
        return _("%(call)s returned a result", call=name), "good", note
    return entry.text, _TONES.get(entry.kind, "plain"), entry.note


def _show_data(entry: Entry) -> str:
    if entry.kind is Kind.CALL:
        both = {"arguments": entry.data, "result": entry.output}
        shown: JsonObject = {name: value for name, value in both.items() if value is not None}
        return write_pretty(shown) if shown else ""
    value = entry.output if entry.kind is Kind.RESULT else entry.data
    return write_pretty(value) if value is not None else ""


def _cut(text: str, limit: int = _MAX_DATA_CHARS) -> str:
    return text if len(text) <= limit else _("%(text)s … (cut; the API has the full text)", text=text[:limit])
