"""Tables of alike items: common values in a line, each value that differs in a column, and sums."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple

from sayso.core.precedents import FAR_TIMES, is_far, read_quantity
from sayso.core.rendering.money import AMOUNTS, CURRENCIES, NUMBER
from sayso.core.rendering.views import Call, normalize, read_text
from sayso.core.text.language import _, mark
from sayso.core.text.summaries import Leaf, hash_display, write_shown
from service.edge.web.content.cards import Card
from service.edge.web.content.kinds import list_arguments, list_prompt
from service.edge.web.content.trees import name_currencies

LEAST = 3  # the number of alike items from which the inbox shows one row
MOST = 100
MOST_CELL_CHARS = 200
_CURRENCY = re.compile(r"[A-Z]{3}")
_INDEXES = re.compile(r"(\[[0-9]+\])+$")


_NAMES: Mapping[str, str] = {"title": mark("Question"), "body": mark("Details"), "reason": mark("Reason")}


class Column(NamedTuple):
    """The name of a value that differs. A column with a total has numbers of `decimals` digits after the point."""

    path: str
    in_prompt: bool
    total: Decimal | None = None
    least: Decimal = Decimal(0)
    most: Decimal = Decimal(0)
    decimals: int = 0
    currency: str = ""

    @property
    def name(self) -> str:
        """What the page calls the column: the argument, or what the request has under this name."""
        return _(_NAMES[self.path]) if self.in_prompt and self.path in _NAMES else self.path


class Cell(NamedTuple):
    """A value that differs; `units` is its number without the decimal point, for a column with a total."""

    leaf: Leaf
    units: str = ""


class Line(NamedTuple):
    """One item: its cells, one for each column, and why it starts without a tick."""

    card: Card
    cells: tuple[Cell, ...]
    reasons: tuple[str, ...] = ()

    @property
    def values(self) -> int:
        return len(list_arguments(self.card.item))

    @property
    def display(self) -> str:
        """The hash of the item's values as the table writes them."""
        rows = [
            (write_shown(leaf.path), write_shown(leaf.text, breaks=True)) for leaf in list_arguments(self.card.item)
        ]
        return hash_display(rows)


@dataclass(frozen=True)
class Table:
    """Alike items. Every value of every item is common or in a cell of its line."""

    alike: str
    title: str
    common: tuple[Leaf, ...]
    common_prompt: tuple[Leaf, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    ineligibility = ""
    """As of a card; no table has an item that its reader cannot decide."""

    @property
    def requests(self) -> list[tuple[str, Leaf]]:
        """What all items request, each text with its name; the question needs none."""
        named = [(Column(leaf.path, in_prompt=True).name, leaf) for leaf in self.common_prompt]
        return [("" if leaf.path == "title" else name, leaf) for name, leaf in named]

    @property
    def first(self) -> Card:
        return self.lines[0].card

    @property
    def row_id(self) -> str:
        return f"alike-{self.alike}"

    @property
    def href(self) -> str:
        return f"/batch/{self.first.row_id}"

    @property
    def section(self) -> str:
        return self.first.section

    @property
    def due_at_ms(self) -> int:
        return self.first.due_at_ms

    @property
    def sums(self) -> list[Column]:
        """The columns with the total of an amount."""
        return [column for column in self.columns if column.total is not None and _is_amount(column.path)]

    def keep(self, reasons: Mapping[str, tuple[str, ...]]) -> "Table":
        """Return the table with earlier reasons of its lines, by the id of their row."""
        lines = (line._replace(reasons=line.reasons or reasons.get(line.card.row_id, ())) for line in self.lines)
        return replace(self, lines=tuple(lines))

    def ticked_total(self, place: int, ticked: Collection[str]) -> Decimal:
        """Return the total of a column in the ticked lines."""
        units = sum(int(line.cells[place].units) for line in self.lines if line.card.row_id in ticked)
        return Decimal(units).scaleb(-self.columns[place].decimals)

    @property
    def labels(self) -> list[str]:
        """The first flags of the items, each once."""
        return [*dict.fromkeys(flag for line in self.lines for flag in line.card.flags)][:2]


def make_tables(cards: Iterable[Card], least: int = LEAST) -> tuple[list[Table], list[Card]]:
    """Return a table for every `least` alike items, and all other cards, both in the order of the cards."""
    kinds: dict[str, list[Card]] = {}
    for card in cards:
        kinds.setdefault(card.alike or card.row_id, []).append(card)
    tables, others = [], []
    for group in kinds.values():
        fitting, long = _part_long(group) if group[0].alike and len(group) >= least else ([], group)
        others += long
        if len(fitting) >= least:
            tables += [_make_table(fitting[start : start + MOST]) for start in range(0, len(fitting), MOST)]
        else:
            others += fitting
    return tables, sorted(others, key=lambda card: card.due_at_ms)


def _part_long(cards: Sequence[Card]) -> tuple[list[Card], list[Card]]:
    """Return the cards whose differing values are short enough for a cell, and the others."""
    differing = set(_list_differing(cards))
    fits = {card.row_id: all(len(text) <= MOST_CELL_CHARS for _, text, _ in differing & _key(card)) for card in cards}
    return [card for card in cards if fits[card.row_id]], [card for card in cards if not fits[card.row_id]]


def _key(card: Card) -> set[tuple[tuple[bool, str], str, str]]:
    """Return the values by their place; the same number in another currency differs."""
    return {(place, leaf.text, leaf.currency) for place, leaf in _list_all(card)}


def _list_all(card: Card) -> Iterator[tuple[tuple[bool, str], Leaf]]:
    for leaf in name_currencies(list_arguments(card.item), minor=card.headline.minor):
        yield (False, leaf.path), leaf
    for leaf in list_prompt(card.item.prompt):
        yield (True, leaf.path), leaf


def _list_differing(cards: Sequence[Card]) -> Iterator[tuple[tuple[bool, str], str, str]]:
    common = set.intersection(*map(_key, cards))
    for card in cards:
        yield from _key(card) - common


def _make_table(cards: Sequence[Card]) -> Table:
    differing = {place for place, _, _ in _list_differing(cards)}
    leaves = [dict(_list_all(card)) for card in cards]
    first = leaves[0]
    in_units = not any(card.headline.minor for card in cards)
    columns = tuple(_make_column(place, leaves, in_units) for place in first if place in differing)
    lines = [
        Line(card, tuple(_make_cell(column, by_place[column.in_prompt, column.path]) for column in columns))
        for card, by_place in zip(cards, leaves, strict=True)
    ]
    return Table(
        alike=cards[0].alike,
        title=Call(cards[0].item.tool.name, {}).title,
        common=tuple(leaf for place, leaf in first.items() if place not in differing and not place[0]),
        common_prompt=tuple(leaf for place, leaf in first.items() if place not in differing and place[0]),
        columns=columns,
        lines=tuple(_find_outliers(columns, lines)),
    )


def _make_column(place: tuple[bool, str], leaves: Sequence[dict[tuple[bool, str], Leaf]], in_units: bool) -> Column:
    in_prompt, path = place
    numbers = [] if in_prompt else [_read_number(by_place[place]) for by_place in leaves]
    known = [number for number in numbers if number is not None]
    currencies = {_find_currency(by_place) for by_place in leaves}
    mixed = _is_amount(path) and len(currencies) > 1
    if not known or len(known) < len(leaves) or mixed:
        return Column(path, in_prompt)
    decimals = max(max(0, -int(number.as_tuple().exponent)) for number in known)
    currency = currencies.pop() if _is_amount(path) and in_units else ""
    total = sum(known, Decimal(0))
    return Column(path, False, total, min(known), max(known), max(decimals, 2 if currency else 0), currency)


def _make_cell(column: Column, leaf: Leaf) -> Cell:
    number = _read_number(leaf) if column.total is not None else None
    if column.currency and number is not None and leaf.literal and NUMBER.fullmatch(leaf.text):
        leaf = replace(leaf, currency=column.currency)
    return Cell(leaf, str(int(number.scaleb(column.decimals))) if number is not None else "")


def _find_outliers(columns: Sequence[Column], lines: Sequence[Line]) -> Iterator[Line]:
    numbers = [
        [Decimal(line.cells[place].units) for line in lines]
        for place, column in enumerate(columns)
        if column.total is not None
    ]
    for row, line in enumerate(lines):
        reasons = [flag.label for flag in line.card.unusual]
        if not reasons and any(is_far(known[row], known) for known in numbers):
            reasons.append(_("over %(times)sx the median here", times=FAR_TIMES))
        yield line._replace(reasons=tuple(reasons))


def _read_number(leaf: Leaf) -> Decimal | None:
    return read_quantity(_find_name(leaf.path), read_text(leaf), is_text=not leaf.literal)


def _is_amount(path: str) -> bool:
    return _find_name(path) in AMOUNTS


def _find_currency(by_place: dict[tuple[bool, str], Leaf]) -> str:
    """Return the currency of a call; empty where it names none, or several."""
    named = {
        leaf.text.upper()
        for (in_prompt, path), leaf in by_place.items()
        if not in_prompt and (_find_name(path) in CURRENCIES)
    }
    currency = named.pop() if len(named) == 1 else ""
    return currency if _CURRENCY.fullmatch(currency) else ""


def _find_name(path: str) -> str:
    return normalize(_INDEXES.sub("", path).rpartition(".")[2])


def make_inbox_rows(cards: Sequence[Card]) -> list[Card | Table]:
    """Return the rows of the inbox by deadline: tables of alike items, and single cards."""
    tables, others = make_tables(cards)
    rows: list[Card | Table] = [*tables, *others]
    return sorted(rows, key=lambda row: row.due_at_ms)
