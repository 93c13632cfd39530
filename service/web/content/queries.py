"""The inbox's search: free text, `tool:`, `agent:`, `is:` and comparisons of arguments."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sayso.records.items import Item
from sayso.records.suspensions import SuspensionRecord
from sayso.sentences.names import join_words
from sayso.text.language import _
from sayso.text.summaries import Leaf, list_values
from service.store.inbox.facets import Facets, find_facets

LONGEST = 200
_LONGEST_NUMBER = 40
_TERM = re.compile(r'(?:(tool|agent|is):)?(?:"([^"]*)"?|(\S+))', re.IGNORECASE)
_COMPARISON = re.compile(r"([^\s<>=\"]+)(<=|>=|<|>|=)(\S+)")
_OPERATORS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
_Filter = Callable[[Facets, bool], bool]
"""A test of an item's facets, and whether the reader can decide it."""

_STATES: Mapping[str, _Filter] = {
    "mine": lambda _, mine: mine,
    "doubt": lambda facets, _: facets.doubt,
    "escalated": lambda facets, _: facets.escalated,
    "unattended": lambda facets, _: facets.unattended,
}

_Test = Callable[[SuspensionRecord, Item], bool]


@dataclass(frozen=True)
class Query:
    """A parsed search; without tests it matches everything. `problem` says which part was not understood."""

    text: str = ""
    filters: tuple[_Filter, ...] = ()
    tests: tuple[_Test, ...] = ()
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.text)

    def admits(self, facets: Facets, mine: bool) -> bool:
        """Return whether items with these facets can fit; `mine` is whether the reader can decide them."""
        return not self.problem and all(fits(facets, mine) for fits in self.filters)

    def matches(self, record: SuspensionRecord, item: Item, mine: bool) -> bool:
        """Return whether an item fits all parts; its secrets must be masked."""
        return self.admits(find_facets(record, item), mine) and all(test(record, item) for test in self.tests)


EVERYTHING = Query()


def parse_query(text: str) -> Query:
    """Parse what a reviewer typed; an unknown `is:` is a problem."""
    text = text.strip()
    filters: list[_Filter] = []
    tests: list[_Test] = []
    for key, quoted, bare in _TERM.findall(text):
        value = (quoted or bare).casefold()
        if key.casefold() == "is" and value not in _STATES:
            names = join_words([f"is:{name}" for name in _STATES], "or")
            return Query(text, problem=_("“is:%(value)s” is not a filter. Use %(names)s.", value=value, names=names))
        if key:
            filters.append(_make_filter(key.casefold(), value))
        else:
            tests.append(_make_test(value, quoted=bool(quoted)))
    return Query(text, tuple(filters), tuple(tests))


def _make_filter(key: str, value: str) -> _Filter:
    if key == "is":
        return _STATES[value]
    if key == "tool":
        return lambda facets, _: value in facets.tool.casefold()
    return lambda facets, _: value in facets.agent.casefold() or value in facets.subagent.casefold()


def _make_test(value: str, *, quoted: bool) -> _Test:
    found = None if quoted else _COMPARISON.fullmatch(value)
    wanted = _parse_number(found[3]) if found else None
    if found is None or wanted is None:
        return lambda record, item: any(value in text.casefold() for text in _list_searched(record, item))
    name, compare = found[1], _OPERATORS[found[2]]

    def test(_: SuspensionRecord, item: Item) -> bool:
        numbers = (_parse_number(leaf.text) for leaf in list_values(item.tool.args) if _is_named(leaf, name))
        return any(compare(number, wanted) for number in numbers if number is not None)

    return test


def _is_named(leaf: Leaf, name: str) -> bool:
    path = leaf.path.casefold()
    return path == name or path.endswith(f".{name}")


def _list_searched(record: SuspensionRecord, item: Item) -> list[str]:
    values = [text for leaf in list_values(item.tool.args) for text in (leaf.path, leaf.text)]
    return [item.tool.name, record.run.agent, record.id, record.run.id, *values]


def _parse_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip('"')) if len(text) <= _LONGEST_NUMBER else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() else None
