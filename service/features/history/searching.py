"""The search over decided items, page by page, and its exports as CSV for people and JSON for programs."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlencode

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import ActorKind, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.outcomes import describe_actor
from sayso.core.text.invisible import write_signs
from sayso.core.text.redaction import Redacted
from sayso.core.text.summaries import write_pretty
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.states import ItemState
from service.core.operations.masking import collect_secrets, mask_record
from service.core.operations.queries import Query, parse_query
from service.core.store.suspensions.reading import UnreadableRecord, id_of, split_readable
from service.core.wiring import Wiring
from service.edge.web.content.cards import Row, make_rows
from service.features.discussions.discussing import Remark, list_remarks
from service.features.discussions.store import Comments

_BATCH = 100

STATES = tuple(state for state in ItemState if state is not ItemState.OPEN)


@dataclass(frozen=True)
class Filter:
    """A reader's filter; an empty field matches everything."""

    verdict: str = ""
    by: str = ""
    tool: str = ""
    agent: str = ""
    fallback: str = ""
    edited: str = ""
    q: str = ""

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    @property
    def query(self) -> str:
        given = {name: value for name, value in asdict(self).items() if value}
        return f"{urlencode(given)}&" if given else ""

    @property
    def without_text(self) -> str:
        """The filter without its text, as `query`."""
        return replace(self, q="").query

    @cached_property
    def parsed(self) -> Query:
        return parse_query(self.q)

    def matches(self, record: SuspensionRecord, item: Item, row: Row) -> bool:
        if self.verdict and row.state != self.verdict:
            return False
        if (self.fallback and not is_by_fallback(item)) or (self.edited and not is_edited(item)):
            return False
        parts = ((self.by, "\n".join(list_deciders(item))), (self.tool, row.tool), (self.agent, row.agent))
        if not all(wanted.casefold() in text.casefold() for wanted, text in parts):
            return False
        return (
            not self.parsed.of_open_items and self.parsed.matches(record, item, mine=False)
        ) or self.q.casefold() in _list_searchable(record, item, row).casefold()


class Found(NamedTuple):
    """A decided item with its masked record and its secrets, or a damaged record; `position` is that behind it."""

    position: int
    record: SuspensionRecord | None
    item: Item | None
    row: Row | None
    damaged: UnreadableRecord | None = None
    secrets: Redacted = Redacted({}, frozenset())


def is_by_fallback(item: Item) -> bool:
    """Return whether nobody decided the item in time."""
    return item.outcome is not None and item.outcome.by.kind is ActorKind.TIMEOUT


def is_edited(item: Item) -> bool:
    """Return whether the item was approved with other arguments."""
    outcome = item.outcome
    return outcome is not None and outcome.verdict is Verdict.APPROVED and outcome.args is not None


def list_deciders(item: Item) -> list[str]:
    """Return who decided: the author of the outcome, then all reviewers of a quorum, and those they stood in for."""
    actors = [*([item.outcome.by] if item.outcome is not None else []), *(decision.by for decision in item.decisions)]
    names = [name for by in actors for name in (describe_actor(by), by.for_person) if name]
    return [*dict.fromkeys(names)]


async def find_again(wiring: Wiring, wanted: Filter, suspension_ids: list[str]) -> list[Found]:
    """Return what still matches in these suspensions, for a search that goes further."""
    records, _damaged = split_readable(await wiring.desk.suspensions.read_page(suspension_ids))
    return [match for record in records for match in await asyncio.to_thread(_match, record, wanted, 0)]


async def search(wiring: Wiring, wanted: Filter, skip: int, limit: int) -> AsyncGenerator[Found | int]:
    """Yield what matches among `limit` suspensions after the first `skip`, the latest first.

    Yields the position at which it stopped, unless there are no more.
    """
    seen: set[str] = set()  # decisions made meanwhile move the others to the next page
    for begin in range(skip, skip + limit, _BATCH):
        count = min(_BATCH, skip + limit - begin)
        ids = await wiring.runs.decided(begin, count)
        by_id = {id_of(record): record for record in await wiring.desk.suspensions.read_page(ids)}
        for position, suspension_id in enumerate(ids, start=begin + 1):
            record = by_id.get(suspension_id)
            if record is None or suspension_id in seen:
                continue
            seen.add(suspension_id)
            if isinstance(record, UnreadableRecord):
                yield Found(position, None, None, None, record)
                continue
            for match in await asyncio.to_thread(_match, record, wanted, position):
                yield match
        if len(ids) < count:
            return
    if await wiring.runs.decided(skip + limit, 1):
        yield skip + limit


def _match(record: SuspensionRecord, wanted: Filter, position: int) -> list[Found]:
    masked, secrets = mask_record(record), collect_secrets([record])
    pairs = [(find_item(masked, row.href.rpartition("/")[2]), row) for row in make_rows(masked)]
    fitting = [(item, row) for item, row in pairs if wanted.matches(masked, item, row)]
    return [Found(position, masked, item, row, secrets=secrets) for item, row in fitting]


def _list_searchable(record: SuspensionRecord, item: Item, row: Row) -> str:
    texts = (row.tool, row.outcome, row.note, item.prompt.reason or "", record.run.title, record.id, record.run.id)
    return "\n".join((*texts, write_pretty(item.tool.args)))


class Bounds(NamedTuple):
    """How many items at most, and how many suspensions it reads for them."""

    items: int = 10_000
    suspensions: int = 50_000

    @property
    def sentence(self) -> str:
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
    count = 0
    async for match in search(wiring, wanted, 0, bounds.suspensions):
        if isinstance(match, Found) and count < bounds.items:
            if match.damaged is not None:
                yield f"{match.damaged.suspension_id} cannot be read: {match.damaged.reason}"
            elif match.record is not None and match.item is not None and match.row is not None:
                count += 1
                comments = await wiring.part(Comments).list_all(match.record.run.id)
                yield _describe_exported(match.record, match.item, match.row, list_remarks(comments, [], match.secrets))
            continue
        yield bounds.sentence
        return


def _describe_exported(record: SuspensionRecord, item: Item, row: Row, remarks: Sequence[Remark]) -> JsonObject:
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
