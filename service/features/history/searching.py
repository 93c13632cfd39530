"""The search over decided items, page by page, and its exports as CSV for people and JSON for programs."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import Depends
from fastapi import Query as QueryParameter
from fastapi.responses import StreamingResponse

from sayso.core.records.decisions import ActorKind, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.outcomes import describe_actor
from sayso.core.text.csv_rows import write_row
from sayso.core.text.redaction import Redacted
from sayso.core.text.summaries import write_pretty
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.states import ItemState
from sayso.wire.channels import HistoryItem, HistoryPage
from sayso.wire.models import moment
from service.core.operations.masking import Definitions, collect_secrets, mask_record
from service.core.operations.queries import LONGEST_SEARCH, Query, parse_query
from service.core.store.suspensions.reading import UnreadableRecord, id_of, split_readable
from service.core.wiring import Wiring
from service.edge.web.content.cards import Row, make_rows
from service.features.discussions.discussing import list_remarks
from service.features.discussions.store import Comments

MOST_SEARCHED = 1000
"""How many suspensions one page reads at most."""

_BATCH = 100

Form = Literal["csv", "json"]
Text = Annotated[str, QueryParameter(max_length=200)]

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


def read_filter(
    verdict: Text = "",
    by: Text = "",
    tool: Text = "",
    agent: Text = "",
    fallback: Text = "",
    edited: Text = "",
    q: Annotated[str, QueryParameter(max_length=LONGEST_SEARCH)] = "",
) -> Filter:
    """Return the filter of a request; an unknown verdict matches everything."""
    texts = (text.strip() for text in (by, tool, agent, fallback, edited, q))
    return Filter(verdict if verdict in STATES else "", *texts)


Wanted = Annotated[Filter, Depends(read_filter)]


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
    definitions = await wiring.runs.find_definitions(records)
    return [match for record in records for match in await asyncio.to_thread(_match, record, definitions, wanted, 0)]


async def search(wiring: Wiring, wanted: Filter, skip: int, limit: int) -> AsyncGenerator[Found | int]:
    """Yield what matches among `limit` suspensions after the first `skip`, the latest first.

    Yields the position at which it stopped, unless there are no more.
    """
    seen: set[str] = set()  # decisions made meanwhile move the others to the next page
    for begin in range(skip, skip + limit, _BATCH):
        count = min(_BATCH, skip + limit - begin)
        ids = await wiring.runs.decided(begin, count)
        by_id = {id_of(record): record for record in await wiring.desk.suspensions.read_page(ids)}
        definitions = await wiring.runs.find_definitions(split_readable([*by_id.values()])[0])
        for position, suspension_id in enumerate(ids, start=begin + 1):
            record = by_id.get(suspension_id)
            if record is None or suspension_id in seen:
                continue
            seen.add(suspension_id)
            if isinstance(record, UnreadableRecord):
                yield Found(position, None, None, None, record)
                continue
            for match in await asyncio.to_thread(_match, record, definitions, wanted, position):
                yield match
        if len(ids) < count:
            return
    if await wiring.runs.decided(skip + limit, 1):
        yield skip + limit


def _match(record: SuspensionRecord, definitions: Definitions, wanted: Filter, position: int) -> list[Found]:
    masked, secrets = mask_record(record), collect_secrets([record])
    pairs = [(find_item(masked, row.href.rpartition("/")[2]), row) for row in make_rows(masked, definitions)]
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


def export_matches(wiring: Wiring, wanted: Filter, form: Form) -> StreamingResponse:
    """Return all matches as a file, up to the bounds of an export."""
    write = write_csv if form == "csv" else write_json
    return StreamingResponse(
        write(wiring, wanted),
        media_type="text/csv; charset=utf-8" if form == "csv" else "application/json",
        headers={"Content-Disposition": f'attachment; filename="sayso-history.{form}"', "Cache-Control": "no-store"},
    )


async def write_csv(wiring: Wiring, wanted: Filter, bounds: Bounds = _BOUNDS) -> AsyncGenerator[str]:
    """Yield the lines of a CSV. Hidden characters have signs, and no cell is a formula."""
    yield write_row(HistoryItem.model_fields)
    async for entry in _take(wiring, wanted, bounds):
        if isinstance(entry, str):
            yield write_row([entry])
        else:
            yield await asyncio.to_thread(_write_item, entry)  # long texts take hundreds of milliseconds


async def write_json(wiring: Wiring, wanted: Filter, bounds: Bounds = _BOUNDS) -> AsyncGenerator[str]:
    """Yield the pieces of a JSON object with `items`, `notes` on unreadable records, and whether it was `cut`."""
    yield '{"items": ['
    notes: list[str] = []
    before = "\n"
    async for entry in _take(wiring, wanted, bounds):
        if isinstance(entry, str):
            notes.append(entry)
        else:
            yield before + json.dumps(entry.model_dump(mode="json"))
            before = ",\n"
    yield f'\n], "notes": {json.dumps(notes)}, "cut": {json.dumps(bounds.sentence in notes)}}}\n'


async def _take(wiring: Wiring, wanted: Filter, bounds: Bounds) -> AsyncGenerator[HistoryItem | str]:
    count = 0
    async for match in search(wiring, wanted, 0, bounds.suspensions):
        if isinstance(match, Found) and count < bounds.items:
            if match.damaged is not None:
                yield describe_damage(match.damaged)
            elif (item := await view_match(wiring, match)) is not None:
                count += 1
                yield item
            continue
        yield bounds.sentence
        return


async def list_page(wiring: Wiring, wanted: Filter, cursor: str, limit: int) -> HistoryPage:
    """Return `limit` items after the suspension `cursor`, or some more of the last suspension.

    It reads a bounded number of suspensions, so a page may have fewer items, or none, and yet a next page.
    """
    skip = position = await wiring.runs.count_decided_to(cursor)
    items: list[HistoryItem] = []
    notes: list[str] = []
    stopped: int | None = None
    async with aclosing(search(wiring, wanted, skip, MOST_SEARCHED)) as matches:
        async for match in matches:
            if not isinstance(match, Found):
                stopped = match
            elif len(items) >= limit and match.position > position:
                stopped = position
                break
            else:
                position = match.position
                notes += [describe_damage(match.damaged)] if match.damaged is not None else []
                item = await view_match(wiring, match)
                items += [item] if item is not None else []
    last = await wiring.runs.decided(stopped - 1, 1) if stopped is not None else []
    return HistoryPage(items=items, notes=notes, next_cursor=last[0] if last else None)


def describe_damage(damaged: UnreadableRecord) -> str:
    """Return a note on a record that cannot be read."""
    return f"{damaged.suspension_id} cannot be read: {damaged.reason}"


async def view_match(wiring: Wiring, match: Found) -> HistoryItem | None:
    """Return a decided item with its comments, its secrets masked; None for a damaged record."""
    record, item, row = match.record, match.item, match.row
    if record is None or item is None or row is None:
        return None
    outcome, edited = item.outcome, is_edited(item)
    comments = await wiring.part(Comments).list_all(record.run.id)
    return HistoryItem(
        decided_at=moment(row.at_ms),
        state=row.state,
        verdict=outcome.verdict if outcome is not None else None,
        decided_by=", ".join(list_deciders(item)),
        fallback=is_by_fallback(item),
        edited=edited,
        agent=record.run.agent,
        requester=record.run.owner,
        claimed_title=record.run.title,
        tool=item.tool.name,
        args=outcome.args if outcome is not None and outcome.args is not None else item.tool.args,
        requested_args=item.tool.args if edited else None,
        value=outcome.value if outcome is not None else None,
        reason=item.prompt.reason,
        message=row.note or None,
        rule=item.terms.rule_id,
        run_id=record.run.id,
        suspension_id=record.id,
        item_id=item.item_id,
        look_ms=row.look_ms,
        invited=tuple(decision.invited for decision in item.decisions if decision.invited is not None),
        comments=[remark.export for remark in list_remarks(comments, [], match.secrets) if remark.href == row.href],
    )


def _write_item(item: HistoryItem) -> str:
    return write_row(item.model_dump(mode="json").values())
