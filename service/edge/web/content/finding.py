"""The inbox: the open items that fit a search, and its filter menus with the number of items for each value.

The buckets narrow a search down, and the records decide.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import inf
from typing import NamedTuple
from urllib.parse import urlencode

from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.records.decisions import Actor
from sayso.core.records.freezes import Freeze
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from service.core.concurrency import release_apart
from service.core.operations.open_items import may_decide
from service.core.operations.queries import LONGEST_SEARCH, Query, Term, parse_query, write_term
from service.core.store.precedents import Precedents
from service.core.store.suspensions.buckets import Bucket, Buckets
from service.core.store.suspensions.facets import Facets, OpenItem
from service.core.store.suspensions.reading import UnreadableRecord, split_readable
from service.core.store.suspensions.texts import Texts
from service.core.wiring import Wiring
from service.edge.web.content.cards import Card, make_cards

PAGE = 50
BUDGET_MS = 50  # a search that reads records goes on for this long, unless it has a page sooner
_CURSOR = re.compile(r"([0-9]{1,15})\.(\w{1,60})(?:\.(\w{1,20}))?", re.ASCII)


@dataclass
class Found:
    """The cards of a page, its unreadable records, and the item after which the next page begins, if there is one."""

    cards: list[Card] = field(default_factory=list)
    damaged: list[UnreadableRecord] = field(default_factory=list)
    following: OpenItem | None = None
    searched: int = 0
    count: int | None = None
    """How many items fit in all; None where only their records can say so, and `searched` were read."""

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
        wanted = [facets for facets, _ in buckets if query.admits(facets, may_decide(facets, reviewer))]
    until_ms = None if query.due_within_ms is None else now_ms() + query.due_within_ms
    if wanted is not None and not query.reads_records:
        page.count = await _count_open(wiring, buckets or (), wanted, until_ms)
    while True:
        items = await _list_first(wiring, query, wanted, page, until_ms)
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


async def _count_open(wiring: Wiring, buckets: Iterable[Bucket], wanted: list[Facets], until_ms: int | None) -> int:
    if until_ms is not None:
        return sum(counts[0] for counts in await wiring.part(Buckets).count_due(wanted, [until_ms]))
    chosen = {*wanted}
    return sum(bucket.size for bucket in buckets if bucket.facets in chosen)


async def _list_first(
    wiring: Wiring, query: Query, wanted: list[Facets] | None, page: Found, until_ms: int | None
) -> list[OpenItem]:
    """Return the next items that may fit, and note how many fit in all where that is known."""
    buckets = wiring.part(Buckets)
    if wanted is None:
        return await buckets.list_first(None, PAGE, page.following, until_ms)
    if query.probes and buckets.searchable:
        matches = await wiring.part(Texts).find(wanted, query.probes, PAGE, page.following, until_ms)
        page.count = matches.certain if not matches.uncertain and not query.unusual else None
        return matches.items
    return await buckets.list_first(wanted, PAGE, page.following, until_ms)


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


MOST_LISTED = 100  # the values that one menu lists, those with the most items first
_NAMES: Mapping[str, str] = {"tool": mark("Tool"), "agent": mark("Agent"), "risk": mark("Risk"), "due": mark("Due")}
_MINE = "is:mine"
_RISKS: Mapping[str, str] = {
    "is:doubt": mark("May already have run"),
    "is:unattended": mark("Runs by itself"),
    "is:escalated": mark("Escalated"),
}
_RISKS_READ: Mapping[str, str] = {
    "is:lookalike": mark("Look-alikes"),
    "is:hidden": mark("Hidden characters"),
    "is:unusual": mark("Unusual"),
}
_SPANS: Mapping[str, str] = {
    "due:10m": mark("Within 10 min"),
    "due:1h": mark("Within 1 h"),
    "due:24h": mark("Within 24 h"),
}
_SPANS_MS = tuple(term.span_ms or 0 for text in _SPANS for term in parse_query(text).terms)


class Tally(NamedTuple):
    """How many items wait, and how many of them the reader can decide."""

    waiting: int = 0
    mine: int = 0


class Choice(NamedTuple):
    """A value of a menu, and the search that chooses it; without a tally, the number of items is not known."""

    name: str
    query: str
    tally: Tally | None
    chosen: bool


class Menu(NamedTuple):
    """One filter: what is chosen, the search without it, its values, and how many more there are."""

    kind: str
    name: str
    chosen: str
    without: str
    choices: tuple[Choice, ...]
    more: int = 0


class Filters(NamedTuple):
    """All filters of the inbox for one search, and how many items wait in all; None where that is not known."""

    mine: Choice
    menus: tuple[Menu, ...]
    waiting: int | None


Tallies = Mapping[str, Mapping[str, Tally]]
"""The tally of each value by filter; the others' choices narrow it, its own do not."""


async def read_filters(wiring: Wiring, reviewer: Actor, query: Query, at_ms: int, since_ms: float) -> Filters:
    """Return the filters for a search, from buckets that were read after the monotonic time `since_ms`."""
    buckets = await wiring.part(Buckets).read(since_ms)
    spans_ms = [*_SPANS_MS, *([] if query.due_within_ms is None else [query.due_within_ms])]
    if buckets is None:
        return _make_filters(None, query, None)
    due = await wiring.part(Buckets).count_due(
        [bucket.facets for bucket in buckets], [at_ms + span_ms for span_ms in spans_ms]
    )
    tallies = await asyncio.to_thread(_count, buckets, due, reviewer, query)
    return _make_filters(tallies, query, sum(bucket.size for bucket in buckets))


def _count(buckets: Sequence[Bucket], due: Sequence[tuple[int, ...]], reviewer: Actor, query: Query) -> Tallies:
    tallies: dict[str, dict[str, Tally]] = {kind: {} for kind in ("mine", *_NAMES)}
    for (facets, size), counts in zip(buckets, due, strict=True):
        mine = may_decide(facets, reviewer)
        unfit = query.find_unfit(facets, mine)
        if len(unfit) > 1:
            continue
        fits = size if query.due_within_ms is None else counts[-1]
        for kind, value, count in _list_values(facets, fits, counts):
            if count and unfit <= {kind}:
                waiting, own = tallies[kind].get(value, Tally())
                tallies[kind][value] = Tally(waiting + count, own + count * mine)
    return tallies


def _list_values(facets: Facets, count: int, due: Sequence[int]) -> Iterable[tuple[str, str, int]]:
    yield "mine", _MINE, count
    yield "tool", facets.tool, count
    for agent in {facets.agent, facets.subagent} - {""}:
        yield "agent", agent, count
    flags = {"is:doubt": facets.doubt, "is:unattended": facets.unattended, "is:escalated": facets.escalated}
    yield from (("risk", word, count) for word, holds in flags.items() if holds)
    yield from zip(repeat("due"), _SPANS, due, strict=False)


def _make_filters(tallies: Tallies | None, query: Query, waiting: int | None) -> Filters:
    counts = tallies or {}
    is_mine = any(term.kind == "mine" for term in query.terms)
    mine = counts.get("mine", {}).get(_MINE, Tally())
    words = query.replace("mine") if is_mine else query.replace("mine", _MINE)
    return Filters(
        mine=Choice(_("For me"), words, mine if tallies is not None else None, is_mine),
        menus=(
            *(_list_names(kind, query, counts.get(kind, {})) for kind in ("tool", "agent")),
            _list_words("risk", query, counts.get("risk"), _RISKS, _RISKS_READ),
            _list_words("due", query, counts.get("due"), _SPANS),
        ),
        waiting=waiting,
    )


def _list_names(kind: str, query: Query, tallies: Mapping[str, Tally]) -> Menu:
    chosen = [term for term in query.terms if term.kind == kind]
    names = sorted(tallies, key=lambda name: (-tallies[name].waiting, name.casefold()))
    listed = [
        Choice(name, query.replace(kind, write_term(kind, name)), tallies[name], _is_chosen(chosen, name))
        for name in names[:MOST_LISTED]
    ]
    usable = tuple(choice for choice in listed if len(choice.query) <= LONGEST_SEARCH)
    name = ", ".join(next((name for name in names if _is_chosen([term], name)), term.value) for term in chosen)
    return Menu(kind, _(_NAMES[kind]), name, query.replace(kind), usable, len(names) - len(usable))


def _list_words(
    kind: str,
    query: Query,
    tallies: Mapping[str, Tally] | None,
    counted: Mapping[str, str],
    read: Mapping[str, str] | None = None,
) -> Menu:
    chosen = {term.text.casefold(): term for term in query.terms if term.kind == kind}
    words = {**counted, **(read or {})}
    choices = tuple(
        Choice(
            _(name),
            query.replace(kind, word),
            tallies.get(word, Tally()) if tallies is not None and word in counted else None,
            word in chosen,
        )
        for word, name in words.items()
    )
    names = ", ".join(_(words[word]) if word in words else term.value for word, term in chosen.items())
    return Menu(kind, _(_NAMES[kind]), names, query.replace(kind), choices)


def _is_chosen(terms: Iterable[Term], name: str) -> bool:
    return any(term.whole and term.value == name.casefold() for term in terms)
