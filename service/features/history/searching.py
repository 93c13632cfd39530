"""The search over decided items: filters, and an iterator that reads the store page by page."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlencode

from sayso.core.records.decisions import ActorKind, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.outcomes import describe_actor
from sayso.core.text.redaction import Redacted
from sayso.core.text.summaries import write_pretty
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.states import ItemState
from service.core.operations.masking import collect_secrets, mask_record
from service.core.operations.queries import Query, parse_query
from service.core.store.suspensions.reading import UnreadableRecord, id_of, split_readable
from service.core.wiring import Wiring
from service.edge.web.content.cards import Row, make_rows

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
        """The filter as the query of a link; every pair ends with `&`."""
        given = {name: value for name, value in asdict(self).items() if value}
        return f"{urlencode(given)}&" if given else ""

    @property
    def without_text(self) -> str:
        """The filter without its text, as `query`."""
        return replace(self, q="").query

    @cached_property
    def parsed(self) -> Query:
        """The text as a search of the inbox; its problem says what is not understood."""
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
