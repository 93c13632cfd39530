"""The inbox's search: free text, `tool:`, `agent:`, `is:`, `due:` and comparisons of arguments."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences import join_words
from sayso.core.text.language import _
from sayso.core.text.lookalikes import count_lookalikes
from sayso.core.text.summaries import list_texts, list_values
from sayso.core.text.suspicions import count_hidden
from service.core.store.suspensions.facets import Facets, find_facets
from service.core.store.suspensions.texts import Probe

LONGEST_SEARCH = 500  # characters of a search of the inbox
_LONGEST_NUMBER = 40
_TERM = re.compile(r'(?:(tool|agent|is|due):)?(?:"((?:[^"]|"")*)("?)|(\S+))', re.IGNORECASE)
_SPAN = re.compile(r"([0-9]{1,4})([mhd])")
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}
_COMPARISON = re.compile(r"([^\s<>=\"]+)(<=|>=|<|>|=)(\S+)")
_OPERATORS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
_Filter = Callable[[Facets, bool], bool]  # a test of an item's facets, and whether the reader can decide it
_STATES: Mapping[str, _Filter] = {
    "mine": lambda _, mine: mine,
    "doubt": lambda facets, _: facets.doubt,
    "escalated": lambda facets, _: facets.escalated,
    "unattended": lambda facets, _: facets.unattended,
}

_Test = Callable[[SuspensionRecord, Item], bool]

_FLAGS: Mapping[str, _Test] = {
    "lookalike": lambda _, item: bool(item.resembles) or any(map(count_lookalikes, _list_texts(item))),
    "hidden": lambda _, item: any(map(count_hidden, _list_texts(item))),
}
"""Flags of single items: they are in no facet, but marked in the texts of open items."""

_UNUSUAL = "unusual"
_WORDS = (*_STATES, *_FLAGS, _UNUSUAL)


class Term(NamedTuple):
    """One part of a search as it was typed, and the filter that it belongs to; free text belongs to none."""

    text: str
    kind: str
    value: str
    whole: bool = False

    @property
    def span_ms(self) -> int | None:
        """The span of a `due:` term, ms; None if it is not one."""
        match = _SPAN.fullmatch(self.value)
        return int(match[1]) * _UNITS_MS[match[2]] if match else None


@dataclass(frozen=True)
class Query:
    """A parsed search, or its `problem`; cards of open items test `due_within_ms` and `unusual`."""

    text: str = ""
    terms: tuple[Term, ...] = ()
    filters: tuple[tuple[str, _Filter], ...] = ()
    tests: tuple[_Test, ...] = ()
    probes: tuple[Probe, ...] = ()
    due_within_ms: int | None = None
    unusual: bool = False
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.text)

    @property
    def free(self) -> str:
        return " ".join(term.text for term in self.terms if not term.kind)

    @property
    def of_open_items(self) -> bool:
        return self.due_within_ms is not None or self.unusual

    @property
    def reads_records(self) -> bool:
        """Whether facets and deadlines do not say which items fit."""
        return bool(self.tests) or self.unusual

    def find_unfit(self, facets: Facets, mine: bool) -> set[str]:
        """Return the kinds of filters that items with these facets do not fit."""
        return {kind for kind, fits in self.filters if not fits(facets, mine)}

    def admits(self, facets: Facets, mine: bool) -> bool:
        """Return whether items with these facets can fit; `mine` is whether the reader can decide them."""
        return not self.problem and all(fits(facets, mine) for _, fits in self.filters)

    def matches(self, record: SuspensionRecord, item: Item, mine: bool) -> bool:
        """Return whether an item fits all parts but `due:` and `is:unusual`; its secrets must be masked."""
        return self.admits(find_facets(record, item), mine) and all(test(record, item) for test in self.tests)

    def replace(self, kind: str, text: str = "") -> str:
        """Return the search with this text in place of the terms of one filter."""
        return " ".join([*(term.text for term in self.terms if term.kind != kind), *([text] if text else [])])


EVERYTHING = Query()


def parse_query(text: str) -> Query:
    """Parse what a reviewer typed; an unknown `is:` or `due:` is a problem."""
    text = text.strip()
    terms = tuple(map(_read_term, _TERM.finditer(text)))
    problem = next(filter(None, map(_find_problem, terms)), "")
    if problem:
        return Query(text, terms, problem=problem)
    return Query(
        text,
        terms,
        filters=tuple((term.kind, fits) for term in terms if (fits := _make_filter(term)) is not None),
        tests=tuple(
            _make_test(term) for term in terms if not term.kind or (term.kind == "risk" and term.value in _FLAGS)
        ),
        probes=tuple(
            _make_probe(term) for term in terms if not term.kind or (term.kind == "risk" and term.value in _FLAGS)
        ),
        due_within_ms=min((term.span_ms or 0 for term in terms if term.kind == "due"), default=None),
        unusual=any(term.kind == "risk" and term.value == _UNUSUAL for term in terms),
    )


def write_term(key: str, name: str) -> str:
    """Return the part of a search that finds exactly this name."""
    return f'{key}:"{name.replace(chr(34), chr(34) * 2)}"'


def _read_term(match: re.Match[str]) -> Term:
    key, quoted, end, bare = match.groups()
    value = (quoted.replace('""', '"') if bare is None else bare).casefold()
    kind = (key or "").casefold()
    if kind == "is":
        kind = "mine" if value == "mine" else "risk"
    return Term(match[0] if bare is not None or end else f'{match[0]}"', kind, value, bare is None)


def _find_problem(term: Term) -> str:
    if term.kind == "risk" and term.value not in _WORDS:
        names = join_words([f"is:{name}" for name in _WORDS], "or")
        return _("“is:%(value)s” is not a filter. Use %(names)s.", value=term.value, names=names)
    if term.kind == "due" and term.span_ms is None:
        return _("“due:%(value)s” is not a time. Use one such as due:10m, due:1h or due:7d.", value=term.value)
    return ""


def _make_filter(term: Term) -> _Filter | None:
    if term.kind == "tool":
        return lambda facets, _: _is_name(term, facets.tool)
    if term.kind == "agent":
        return lambda facets, _: _is_name(term, facets.agent) or _is_name(term, facets.subagent)
    return _STATES.get(term.value) if term.kind in ("mine", "risk") else None


def _is_name(term: Term, name: str) -> bool:
    """Return whether a name is the one of a quoted term, or has the text of another."""
    name = name.casefold()
    return bool(name) and (name == term.value if term.whole else term.value in name)


def _make_probe(term: Term) -> Probe:
    """Return the test of an item's stored text, which every item passes that fits the term."""
    comparison = None if term.kind else _read_comparison(term)
    if comparison is not None:
        return Probe("number", comparison[0], comparison[1], str(comparison[2]))
    return Probe(term.value) if term.kind else Probe("text", term.value)


def _read_comparison(term: Term) -> tuple[str, str, Decimal] | None:
    match = None if term.whole else _COMPARISON.fullmatch(term.value)
    wanted = _parse_number(match[3]) if match else None
    return (match[1], match[2], wanted) if match is not None and wanted is not None else None


def _make_test(term: Term) -> _Test:
    if term.kind:
        return _FLAGS[term.value]
    value, comparison = term.value, _read_comparison(term)
    if comparison is None:

        def find(record: SuspensionRecord, item: Item) -> bool:
            texts = [text for leaf in list_values(item.tool.args) for text in (leaf.path, leaf.text)]
            names = (item.tool.name, record.run.agent, record.id, record.run.id)
            return any(value in text.casefold() for text in (*names, *texts))

        return find
    name, compare, wanted = f".{comparison[0]}", _OPERATORS[comparison[1]], comparison[2]

    def test(_: SuspensionRecord, item: Item) -> bool:
        named = (leaf.text for leaf in list_values(item.tool.args) if f".{leaf.path.casefold()}".endswith(name))
        return any(compare(number, wanted) for number in map(_parse_number, named) if number is not None)

    return test


def _list_texts(item: Item) -> list[str]:
    return [item.tool.name, *list_texts(item.tool.args)]


def _parse_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip('"')) if len(text) <= _LONGEST_NUMBER else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() else None
