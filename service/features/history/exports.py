"""Decided items as CSV for people and JSON for programs, line by line. Both say at their end if they were cut."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.invisible import write_signs
from service.core.wiring import Wiring
from service.edge.web.content.cards import Row
from service.features.discussions.discussing import Remark, list_remarks
from service.features.discussions.store import Comments
from service.features.history.searching import Filter, Found, is_by_fallback, is_edited, list_deciders, search


class Bounds(NamedTuple):
    """How many items at most, and how many suspensions it reads for them."""

    items: int = 10_000
    suspensions: int = 50_000

    @property
    def sentence(self) -> str:
        """The sentence at the end of an export that reached one of them."""
        return f"Cut: at most {self.items:,} items of {self.suspensions:,} suspensions. Narrow the filter."


_BOUNDS = Bounds()
_COLUMNS = (
    "decided_at",
    "state",
    "verdict",
    "decided_by",
    "fallback",
    "edited",
    "agent",
    "requester",
    "claimed_title",
    "tool",
    "args",
    "requested_args",
    "value",
    "reason",
    "message",
    "rule",
    "run_id",
    "suspension_id",
    "item_id",
    "look_ms",
    "comments",
)
_FORMULA = "=+-@|;\uff1d\uff0b\uff0d\uff20"


_LATER = re.compile(r"([;\t\r\n\v\f\x85\u2028\u2029][\s\"]*)([=+\-@\uff1d\uff0b\uff0d\uff20])?")
"""Where a spreadsheet separates cells by `;`, as in many countries, by tabs or lines; and a formula that begins there.

It also matches without a formula, so that a text of many line breaks is searched once.
"""


async def write_csv(wiring: Wiring, wanted: Filter, bounds: Bounds = _BOUNDS) -> AsyncGenerator[str]:
    """Yield the lines of a CSV. Hidden characters have signs, and no cell is a formula."""
    yield _write_row(_COLUMNS)
    async for entry in _take(wiring, wanted, bounds):
        if isinstance(entry, str):
            yield _write_row([_write_cell(entry)])
        else:
            yield await asyncio.to_thread(_write_cells, entry)  # long texts take hundreds of milliseconds


async def write_json(wiring: Wiring, wanted: Filter, bounds: Bounds = _BOUNDS) -> AsyncGenerator[str]:
    """Yield the pieces of a JSON object with `items`, `notes` on unreadable records, and whether it was `cut`."""
    yield '{"items": ['
    notes: list[str] = []
    before = "\n"
    async for entry in _take(wiring, wanted, bounds):
        if isinstance(entry, str):
            notes.append(entry)
        else:
            yield before + json.dumps(entry)
            before = ",\n"
    yield f'\n], "notes": {json.dumps(notes)}, "cut": {json.dumps(bounds.sentence in notes)}}}\n'


async def _take(wiring: Wiring, wanted: Filter, bounds: Bounds) -> AsyncGenerator[JsonObject | str]:
    """Yield the exported items, and sentences on what is missing."""
    count = 0
    async for match in search(wiring, wanted, 0, bounds.suspensions):
        if isinstance(match, Found) and count < bounds.items:
            if match.damaged is not None:
                yield f"{match.damaged.suspension_id} cannot be read: {match.damaged.reason}"
            elif match.record is not None and match.item is not None and match.row is not None:
                count += 1
                comments = await wiring.part(Comments).list_all(match.record.run.id)
                yield _describe(match.record, match.item, match.row, list_remarks(comments, [], match.secrets))
            continue
        yield bounds.sentence
        return


def _describe(record: SuspensionRecord, item: Item, row: Row, remarks: Sequence[Remark]) -> JsonObject:
    outcome = item.outcome
    edited = is_edited(item)
    values: tuple[JsonValue, ...] = (
        iso_utc(row.at_ms),
        row.state,
        outcome.verdict.value if outcome is not None else None,
        ", ".join(list_deciders(item)),
        is_by_fallback(item),
        edited,
        record.run.agent,
        record.run.owner,
        record.run.title,
        item.tool.name,
        outcome.args if outcome is not None and outcome.args is not None else item.tool.args,
        item.tool.args if edited else None,
        outcome.value if outcome is not None else None,
        item.prompt.reason,
        row.note or None,
        item.terms.rule_id,
        record.run.id,
        record.id,
        item.item_id,
        row.look_ms,
        [remark.export for remark in remarks if remark.href == row.href],
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _write_cells(item: JsonObject) -> str:
    return _write_row(map(_write_cell, item.values()))


def _write_cell(value: JsonValue) -> str:
    """Return a cell of which no spreadsheet evaluates any part: what could begin a formula gets an apostrophe."""
    if value is None:
        return ""
    text = write_signs(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    text = _LATER.sub(lambda match: f"{match[1]}'{match[2]}" if match[2] else match[1], text)
    return f"'{text}" if (text.lstrip()[:1] in _FORMULA and text.strip()) or text[:1] in "\t\n" else text


def _write_row(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(cells)
    return line.getvalue()
