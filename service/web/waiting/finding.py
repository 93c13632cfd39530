"""The open items that fit a search, page by page: the buckets narrow it down, and the records decide."""

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf

from sayso.clock import monotonic_ms, now_ms
from sayso.errors import InvalidInput
from sayso.records.decisions import Actor
from sayso.text.language import _
from service.store.inbox.facets import Facets, OpenItem
from service.store.suspensions.reading import UnreadableRecord, split_readable
from service.web.content.cards import Card, make_cards
from service.web.content.queries import Query
from service.web.waiting.counting import may_decide
from service.wiring import Wiring

PAGE = 50
BUDGET_MS = 50
"""A search that reads records goes on for this long, unless it has a page sooner."""

_CURSOR = re.compile(r"([0-9]{1,15})\.(\w{1,60})(?:\.(\w{1,20}))?", re.ASCII)


@dataclass
class Found:
    """The cards of a page, its unreadable records, and the item after which the next page begins, if there is one."""

    cards: list[Card] = field(default_factory=list)
    damaged: list[UnreadableRecord] = field(default_factory=list)
    following: OpenItem | None = None
    searched: int = 0

    @property
    def cursor(self) -> str:
        """The place of the next page in a link; empty on the last page."""
        return write_cursor(self.following) if self.following is not None else ""


def write_cursor(item: OpenItem) -> str:
    """Return the place of an item in a link."""
    return ".".join(filter(None, (str(item.deadline_at_ms), item.suspension_id, item.item_id)))


def read_cursor(text: str) -> OpenItem | None:
    """Return the place that a link names, None for the beginning; raises `InvalidInput`."""
    if not text:
        return None
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidInput(_("The page's address names no place in the list. Open the inbox again."))
    return OpenItem(int(found[1]), found[2], found[3] or "")


async def find_open(
    wiring: Wiring, reviewer: Actor, query: Query, after: OpenItem | None = None, since_ms: float = inf
) -> Found:
    """Return a page of open items that fit the search, the earliest deadline first.

    Buckets that were read after the monotonic time `since_ms` count.
    """
    found, began_ms, freezes = Found(following=after), monotonic_ms(), await wiring.freezes.known()
    wanted = await _choose(wiring, reviewer, query, since_ms)
    until_ms = None if query.due_within_ms is None else now_ms() + query.due_within_ms
    while True:
        items = await wiring.buckets.list_first(wanted, PAGE, found.following, until_ms)
        records, damaged = split_readable(await wiring.desk.suspensions.read_page(_list_suspensions(items)))
        definitions = await wiring.runs.find_definitions(records)
        facts = (reviewer, freezes, now_ms(), query, definitions, await wiring.precedents.find_earlier(records))
        cards = await asyncio.to_thread(make_cards, records, *facts)
        found.cards += cards if wanted is None else _keep(cards, items)
        found.damaged += damaged
        found.searched += len(items)
        found.following = items[-1] if len(items) == PAGE else None
        over = monotonic_ms() - began_ms > BUDGET_MS
        if found.following is None or not query or len(found.cards) >= PAGE or over:
            return found


async def _choose(wiring: Wiring, reviewer: Actor, query: Query, since_ms: float) -> list[Facets] | None:
    """Return the buckets that may have fitting items; None for the whole inbox."""
    buckets = await wiring.buckets.read(since_ms) if query else None
    if buckets is None:
        return None
    return [facets for facets, _ in buckets if query.admits(facets, may_decide(facets.audience, reviewer))]


def _list_suspensions(items: Sequence[OpenItem]) -> list[str]:
    return [*dict.fromkeys(item.suspension_id for item in items)]


def _keep(cards: Sequence[Card], items: Collection[OpenItem]) -> list[Card]:
    """Return the cards of these items: another item of their suspensions has its own place in the order."""
    listed = {(item.suspension_id, item.item_id) for item in items}
    return [card for card in cards if (card.record.id, card.item.item_id) in listed]
