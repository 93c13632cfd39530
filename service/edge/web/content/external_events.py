"""External events of a run in sentences, in one timeline with its audit trail."""

from collections.abc import Sequence
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.records.events import TrailEntry
from sayso.core.text.language import _
from sayso.core.text.summaries import write_pretty
from sayso.timeline.external_events import Kind
from sayso.timeline.merging import SOURCE_FORMATS, Entry, SourceFormat, build_entries, merge
from service.core.store.runs.external_events import ExternalEvents
from service.edge.web.content.timeline import Line, describe_trail

MAX_EXTERNAL_EVENTS = 1_000  # a page shows the latest external events only; the API has all of them
_MAX_CHARS = 8_000
_MAX_DEPTH = 4

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
    lines = iter(describe_trail(trail))
    merged = merge(trail, entries)
    return [next(lines) if isinstance(entry, TrailEntry) else describe_entry(entry) for entry in merged]


def describe_entry(entry: Entry) -> Line:
    """Return the line of an external entry."""
    text, tone, note = _describe(entry)
    label = SOURCE_FORMATS[SourceFormat(entry.source_format)].label
    return Line(
        seq=entry.first_seq,
        at_ms=entry.at_ms,
        kind=entry.kind,
        tone=tone,
        text=_cut(text, 300),
        note=_cut(note),
        data=_cut(_show_data(entry)),
        source=label if entry.source == "agent" else f"{label}, {entry.source}",
        depth=min(entry.depth, _MAX_DEPTH),
    )


def _describe(entry: Entry) -> tuple[str, str, str]:
    speaker = entry.who or _("The agent")
    if entry.kind is Kind.TEXT:
        return _("%(who)s said", who=speaker), "plain", entry.text
    if entry.kind is Kind.REASONING:
        return _("%(who)s reasoned", who=speaker), "quiet", entry.text
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


def _cut(text: str, limit: int = _MAX_CHARS) -> str:
    return text if len(text) <= limit else _("%(text)s … (cut; the API has the full text)", text=text[:limit])
