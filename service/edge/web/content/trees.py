"""Arguments as a tree with every leaf: indented keys, plain lists on one line, lists of like objects as tables."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.money import is_amount, name_currency
from sayso.core.rendering.views import Row
from sayso.core.text.invisible import has_rtl
from sayso.core.text.summaries import Leaf, list_texts, list_values, write_key, write_shown

_STEP = re.compile(r'\[(?:[0-9]+|"(?:[^"\\]|\\.)*")\]|\.?[^.\[\]]+')
_DIGITS = re.compile(r"(-?)([0-9]{4,})(.*)", re.DOTALL)


@dataclass(frozen=True)
class Branch:
    """A key with one value, a list of plain values, a table with `columns`, or further branches."""

    key: str
    values: tuple[Leaf, ...] = ()
    is_list: bool = False
    columns: tuple[str, ...] = ()
    table: tuple[tuple[Leaf, ...], ...] = ()
    children: tuple["Branch", ...] = ()

    @property
    def leaves(self) -> Iterator[Leaf]:
        yield from self.values
        for row in self.table:
            yield from row
        for child in self.children:
            yield from child.leaves


class PlacedRow(NamedTuple):
    """A row whose path is parted: what is `above` its key, and whether the row before stands under the same.

    `currency` is that of an amount, where a row beside it names one.
    """

    row: Row
    above: str
    key: str
    repeated: bool
    currency: str = ""


def make_tree(args: JsonObject, *, minor: bool = False) -> list[Branch]:
    """Return a branch for every argument; with `minor`, amounts may be in cents and have no currency."""
    return _grow_all(args, minor)


def place_rows(rows: Sequence[Row], *, minor: bool = False) -> list[PlacedRow]:
    """Return the rows with parted paths, so that a page repeats no path. Both parts together are the path as shown."""
    placed: list[PlacedRow] = []
    currencies = _find_currencies(rows) if not minor else {}
    before = ""
    for row in rows:
        above, key = part_path(row.path)
        currency = currencies.get(above, "") if row.literal and is_amount(key, row.text) else ""
        placed.append(PlacedRow(row, above, key, above == before, currency))
        before = above
    return placed


def name_currencies(leaves: Sequence[Leaf], *, minor: bool = False) -> list[Leaf]:
    """Return all leaves of some arguments, an amount with the currency that a leaf beside it names."""
    currencies = _find_currencies(leaves) if not minor else {}
    parts = ((leaf, *part_path(leaf.path)) for leaf in leaves)
    return [_name_currency(leaf, key, currencies.get(above, "")) for leaf, above, key in parts]


def _find_currencies(rows: Sequence[Row | Leaf]) -> dict[str, str]:
    beside: dict[str, JsonObject] = {}
    for row in rows:
        above, key = part_path(row.path)
        beside.setdefault(above, {})[key] = row.text
    return {above: currency for above, values in beside.items() if (currency := name_currency(values))}


def reads_backwards(args: JsonObject) -> bool:
    """Return whether a text or a key has letters that are written from right to left."""
    return any(map(has_rtl, list_texts(args)))


def group_digits(text: str) -> list[str]:
    """Return a number in parts of three digits before its point; joined they are the number."""
    match = _DIGITS.fullmatch(text)
    if match is None:
        return [text]
    sign, digits, rest = match.groups()
    first = len(digits) % 3 or 3
    parts = [digits[:first], *(digits[start : start + 3] for start in range(first, len(digits), 3))]
    return [sign + parts[0], *parts[1:-1], parts[-1] + rest]


def _grow_all(values: JsonObject, minor: bool) -> list[Branch]:
    currency = name_currency(values) if not minor else ""
    return [_name_money(_grow(write_key(key), value, minor), key, currency) for key, value in values.items()]


def _name_money(branch: Branch, key: str, currency: str) -> Branch:
    if not currency or len(branch.values) != 1 or branch.is_list:
        return branch
    return replace(branch, values=(_name_currency(branch.values[0], key, currency),))


def _name_currency(leaf: Leaf, key: str, currency: str) -> Leaf:
    return replace(leaf, currency=currency) if currency and leaf.literal and is_amount(key, leaf.text) else leaf


def _grow(key: str, value: JsonValue, minor: bool) -> Branch:
    if isinstance(value, dict) and value:
        return Branch(key, children=tuple(_grow_all(value, minor)))
    if not isinstance(value, list) or not value:
        return Branch(key, values=tuple(list_values(value)))
    if not any(isinstance(entry, dict | list) and entry for entry in value):
        leaves = tuple(leaf for entry in value for leaf in list_values(entry))
        if sum(len(leaf.text) + 2 for leaf in leaves) <= 100:
            return Branch(key, values=leaves, is_list=True)
    columns, table = _tabulate(value, minor)
    if table:
        return Branch(key, columns=columns, table=table)
    return Branch(key, children=tuple(_grow(f"[{place}]", entry, minor) for place, entry in enumerate(value)))


def _tabulate(value: Sequence[JsonValue], minor: bool) -> tuple[tuple[str, ...], tuple[tuple[Leaf, ...], ...]]:
    """Return keys and cells of a list of objects with the same keys and short plain values; none of another list."""
    first = value[0]
    if len(value) < 2 or not isinstance(first, dict) or not 1 <= len(first) <= 6:
        return (), ()
    rows = []
    for entry in value:
        if not isinstance(entry, dict) or entry.keys() != first.keys():
            return (), ()
        cells = [list_values(entry[key]) for key in first]
        if any(len(cell) != 1 or cell[0].path or len(cell[0].text) > 40 for cell in cells):
            return (), ()
        currency = name_currency(entry) if not minor else ""
        rows.append(tuple(_name_currency(cell[0], key, currency) for key, cell in zip(first, cells, strict=True)))
    return tuple(map(write_key, first)), tuple(rows)


def split_path(path: str) -> list[str]:
    """Return the steps of a path, such as `items`, `[0]` and `.name`."""
    return _STEP.findall(path)


def part_path(path: str) -> tuple[str, str]:
    """Return what is above the key of a path, and the key; together they are the path as shown."""
    steps = split_path(path)
    above, key = "".join(steps[:-1]), steps[-1] if steps else path
    if key.startswith("."):
        above, key = f"{above}.", key[1:]
    if above + key != path:
        return "", path
    plain = path.isascii() and path.isprintable() and " " not in path
    return (above, key) if plain or write_shown(above) + write_shown(key) == write_shown(path) else ("", path)
