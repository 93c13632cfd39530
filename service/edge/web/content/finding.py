"""The open items that fit a search, page by page: the buckets narrow it down, and the records decide."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from urllib.parse import urlencode

from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.records.decisions import Actor
from sayso.core.records.freezes import Freeze
from sayso.core.text.language import _
from sayso.errors import InvalidInput
from service.core.concurrency import release_apart
from service.core.operations.open_items import may_decide
from service.core.operations.queries import Query
from service.core.store.precedents import Precedents
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.facets import Facets, OpenItem
from service.core.store.suspensions.reading import UnreadableRecord, split_readable
from service.core.wiring import Wiring
from service.edge.web.content.cards import Card, make_cards

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

    @property
    def further(self) -> str:
        """The query of the link that searches further and keeps what was found, until that fills a page."""
        kept = dict.fromkeys(card.record.id for card in self.cards) if len(self.cards) < PAGE else ()
        return urlencode({"after": self.cursor, "kept": ",".join(kept), "searched": self.searched})


def write_cursor(item: OpenItem) -> str:
    """Return the place of an item in a link."""
    return ".".join(filter(None, (str(item.deadline_at_ms), item.suspension_id, item.item_id)))


def read_cursor(text: str) -> OpenItem | None:
    """Return the place that a link names, None for the beginning; raises `InvalidInput`."""
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InvalidInput(_("The page's address names no place in the list. Open the inbox again."))
    return OpenItem(int(match[1]), match[2], match[3] or "")


async def find_open(
    wiring: Wiring,
    reviewer: Actor,
    query: Query,
    after: OpenItem | None = None,
    since_ms: float = inf,
    earlier: Found | None = None,
) -> Found:
    """Return a page of open items that fit the search, the earliest deadline first, behind those found `earlier`.

    Buckets that were read after the monotonic time `since_ms` count.
    """
    page, began_ms, freezes = earlier or Found(), monotonic_ms(), await wiring.freezes.known()
    page.following = after
    buckets = await wiring.part(Buckets).read(since_ms) if query else None
    wanted: list[Facets] | None = None  # the whole inbox
    if buckets is not None:
        wanted = [facets for facets, _ in buckets if query.admits(facets, may_decide(facets.audience, reviewer))]
    until_ms = None if query.due_within_ms is None else now_ms() + query.due_within_ms
    while True:
        items = await wiring.part(Buckets).list_first(wanted, PAGE, page.following, until_ms)
        suspension_ids = [*dict.fromkeys(item.suspension_id for item in items)]
        cards, damaged = await _make_cards(wiring, reviewer, query, freezes, suspension_ids)
        if wanted is not None:  # another item of their suspensions has its own place in the order
            listed = {(item.suspension_id, item.item_id) for item in items}
            cards = [card for card in cards if (card.record.id, card.item.item_id) in listed]
        page.cards += cards
        page.damaged += damaged
        page.searched += len(items)
        page.following = items[-1] if len(items) == PAGE else None
        over = monotonic_ms() - began_ms > BUDGET_MS
        if page.following is None or not query or len(page.cards) >= PAGE or over:
            return page


async def find_again(wiring: Wiring, reviewer: Actor, query: Query, kept: list[str], searched: int) -> Found:
    """Return the items of these suspensions that still wait and fit the search, for a search that goes further."""
    cards, _damaged = await _make_cards(wiring, reviewer, query, await wiring.freezes.known(), kept[:PAGE])
    return Found(cards, searched=searched)


async def _make_cards(
    wiring: Wiring, reviewer: Actor, query: Query, freezes: Sequence[Freeze], suspension_ids: list[str]
) -> tuple[list[Card], list[UnreadableRecord]]:
    records, damaged = split_readable(await wiring.desk.suspensions.read_page(suspension_ids))
    definitions = await wiring.runs.find_definitions(records)
    facts = (reviewer, freezes, now_ms(), query, definitions, await wiring.part(Precedents).find_earlier(records))
    cards = await asyncio.to_thread(make_cards, records, *facts)
    release_apart(records)
    return cards, damaged
