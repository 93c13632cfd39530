"""The filter menus of the inbox: the values that wait now, and how many items of each the reader can decide."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from sayso.core.records.decisions import Actor
from sayso.core.text.language import _, mark
from service.core.operations.open_items import may_decide
from service.core.operations.queries import LONGEST_SEARCH, Query, Term, parse_query, write_term
from service.core.store.suspensions.buckets import Bucket, Buckets
from service.core.store.suspensions.facets import Facets
from service.core.wiring import Wiring

MOST_LISTED = 100
"""The values that one menu lists, those with the most items first."""

_NAMES: Mapping[str, str] = {
    "tool": mark("Tool"),
    "agent": mark("Agent"),
    "risk": mark("Risk"),
    "due": mark("Due"),
}
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


@dataclass(frozen=True)
class Choice:
    """A value of a menu, and the search that chooses it; without a tally, the number of items is not known."""

    name: str
    query: str
    tally: Tally | None
    chosen: bool


@dataclass(frozen=True)
class Menu:
    """One filter: what is chosen, the search without it, its values, and how many more there are."""

    kind: str
    name: str
    chosen: str
    without: str
    choices: tuple[Choice, ...]
    more: int = 0


@dataclass(frozen=True)
class Filters:
    """All filters of the inbox for one search, and how many items wait in all; None where that is not known."""

    mine: Choice
    menus: tuple[Menu, ...]
    waiting: int | None


@dataclass
class _Tallies:
    """The tally of each value by filter; the others' choices narrow it, its own do not."""

    by_kind: dict[str, dict[str, Tally]] = field(default_factory=lambda: {kind: {} for kind in ("mine", *_NAMES)})

    def add(self, kind: str, value: str, count: int, *, mine: bool) -> None:
        before = self.by_kind[kind].get(value, Tally())
        self.by_kind[kind][value] = Tally(before.waiting + count, before.mine + count * mine)


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


def _count(buckets: Sequence[Bucket], due: Sequence[tuple[int, ...]], reviewer: Actor, query: Query) -> _Tallies:
    tallies = _Tallies()
    for (facets, size), counts in zip(buckets, due, strict=True):
        mine = may_decide(facets.audience, reviewer)
        unfit = query.find_unfit(facets, mine)
        if len(unfit) > 1:
            continue
        fits = size if query.due_within_ms is None else counts[-1]
        for kind, value, count in _list_values(facets, fits, counts):
            if count and unfit <= {kind}:
                tallies.add(kind, value, count, mine=mine)
    return tallies


def _list_values(facets: Facets, count: int, due: Sequence[int]) -> Iterable[tuple[str, str, int]]:
    """Yield each filter and value of a bucket, and how many of its items it has."""
    yield "mine", _MINE, count
    yield "tool", facets.tool, count
    for agent in {facets.agent, facets.subagent} - {""}:
        yield "agent", agent, count
    flags = {"is:doubt": facets.doubt, "is:unattended": facets.unattended, "is:escalated": facets.escalated}
    yield from (("risk", word, count) for word, holds in flags.items() if holds)
    yield from zip(repeat("due"), _SPANS, due, strict=False)


def _make_filters(tallies: _Tallies | None, query: Query, waiting: int | None) -> Filters:
    counts = tallies.by_kind if tallies is not None else {}
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
    """Return whether one of the terms names exactly this value."""
    return any(term.whole and term.value == name.casefold() for term in terms)
