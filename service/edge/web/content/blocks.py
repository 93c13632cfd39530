"""The values of a call as its page shows them: plain lists on one line, and lists of like objects as tables."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.views import SHORT_STYLES, Row, View, normalize
from sayso.core.text.language import cut
from sayso.core.text.summaries import hash_display, write_shown
from service.edge.web.content.diffs import Budget, Part, compare_lines, number_lines, write_diff
from service.edge.web.content.trees import PlacedRow, part_path, place_rows, split_path
from service.forms.controls import TITLE_CHARS
from service.forms.schemas import find_shape

FIRST_ROWS = 50  # of a table; a browser with scripts shows the others when it is asked to
_SHORT_CHARS = 80
_MOST_COLUMNS = 8
_PATCH_KINDS = ("", "added", "removed", "header")


class Column(NamedTuple):
    """A key of like objects, with its title in the schema."""

    key: str
    title: str


class Cell(NamedTuple):
    """What a table shows of an object under one key: a value, or all values of a list; nothing where it has no key."""

    values: tuple[PlacedRow, ...] = ()
    is_list: bool = False


@dataclass(frozen=True)
class Block:
    """One row of the page: a value, or with `is_list` or `columns` all values of a list.

    `table` has the objects of a list by the keys in `columns`. `diff` has the
    lines of a text, or of an old text and of the new one in its place. `title` is the schema's name of the value.
    """

    above: str
    key: str
    repeated: bool
    title: str
    values: tuple[PlacedRow, ...]
    is_list: bool = False
    columns: tuple[Column, ...] = ()
    table: tuple[tuple[Cell, ...], ...] = ()
    diff: tuple[Part, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether the values stand below their name."""
        return bool(self.columns or self.diff) or self.values[0].row.style not in SHORT_STYLES

    @property
    def paths(self) -> list[str]:
        return [value.row.path for value in self.values]

    @property
    def cells(self) -> list[str]:
        """The texts on the page."""
        name = _write_name(self.title, self.above, self.key)
        if self.columns:
            heads = [_write_name(column.title, "", column.key) for column in self.columns]
            return [name, *heads, *(_write_all(*cell) for row in self.table for cell in row)]
        if self.diff:
            return [
                " → ".join([name, *(_write_name("", value.above, value.key) for value in self.values[1:])]),
                write_diff(self.diff),
            ]
        return [name, _write_all(self.values, self.is_list)]


class Blocks(NamedTuple):
    """What to check first, and all other values of a call."""

    first: tuple[Block, ...]
    rest: tuple[Block, ...]

    @property
    def hash(self) -> str:
        return hash_display([block.cells for block in (*self.first, *self.rest)])


def make_blocks(view: View, schema: JsonObject | None = None, *, minor: bool = False) -> Blocks:
    """Return every value of a view; `minor` is as in `place_rows`."""
    every = (*view.notable, *view.body, *view.rest)
    lists = Counter(path for row in every for path in (_read_list(row), _read_table(row).path) if path)
    titles, budget = Titles(schema or {}), Budget()
    first, rest = (
        tuple(_number(tuple(_join(place_rows(rows, minor=minor), lists, titles)), budget))
        for rows in (view.notable, (*view.body, *view.rest))
    )
    return Blocks(first, rest)


class _Place(NamedTuple):
    """The list of objects that a value stands in, the place of its object, and its key, which may have a list."""

    path: str = ""
    place: int = 0
    key: str = ""
    is_list: bool = False


class Titles:
    """The titles of values in the schema, each looked up once."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._known: dict[tuple[str | int, ...], str] = {}

    def find(self, path: str) -> str:
        """Return the title of a value, unless it only repeats the name."""
        if not self._schema:
            return ""
        steps = tuple(0 if isinstance(step, int) else step for step in map(_read_step, split_path(path)))
        if steps not in self._known:
            shape = find_shape(self._schema, steps)
            title = shape.title if shape is not None else ""
            name = steps[-1] if isinstance(steps[-1], str) else ""
            self._known[steps] = "" if normalize(title) == normalize(name) else cut(title, TITLE_CHARS)
        return self._known[steps]


def _read_step(step: str) -> str | int:
    if step.startswith('["'):
        return str(json.loads(step[1:-1], strict=False))
    return int(step[1:-1]) if step.startswith("[") else step.removeprefix(".")


def _read_list(row: Row) -> str:
    """Return the path of the list that a value is an entry of; empty for another value."""
    steps = split_path(row.path)
    return "".join(steps[:-1]) if steps[1:] and _is_place(steps[-1]) else ""


def _read_table(row: Row) -> _Place:
    """Return where a value, or the list that it is an entry of, stands below a key of a list of objects."""
    steps = split_path(row.path)
    is_list = bool(steps) and _is_place(steps[-1])
    if is_list:
        steps = steps[:-1]
    if len(steps) < 3 or not _is_place(steps[-2]) or _is_place(steps[-1]):
        return _Place()
    return _Place("".join(steps[:-2]), int(steps[-2][1:-1]), steps[-1], is_list)


def _is_place(step: str) -> bool:
    return step[:1] == "[" and step[1:2] != '"'


def _join(rows: Sequence[PlacedRow], lists: Counter[str], titles: Titles) -> Iterator[Block]:
    before = ""
    for path, found in groupby(rows, lambda placed: _read_table(placed.row).path):
        group = tuple(found)
        table = _join_table(path, group, titles) if path and len(group) == lists[path] else None
        for block in [table] if table else _join_lists(group, lists, titles):
            yield replace(block, repeated=bool(block.above) and block.above == before)
            before = block.above


def _join_lists(rows: Sequence[PlacedRow], lists: Counter[str], titles: Titles) -> Iterator[Block]:
    for path, found in groupby(rows, lambda placed: _read_list(placed.row)):
        group = tuple(found)
        if path and len(group) == lists[path] and _fits_a_line(group):
            above, key = part_path(path)
            yield Block(above, key, False, titles.find(path), group, is_list=True)
        else:
            yield from (_make_block(placed, titles) for placed in group)


def _number(blocks: tuple[Block, ...], budget: Budget) -> Iterator[Block]:
    """Yield the blocks with numbered lines; an old text and the one that replaces it become one block."""
    following = iter(zip_longest(blocks, blocks[1:]))
    for block, after in following:
        row = block.values[0].row
        new = after.values[0].row if after is not None else None
        pair = new is not None and (row.style, new.style) == ("removed", "added") and len(block.values) == 1
        if pair and after is not None and new is not None:
            diff = compare_lines(row.stored, new.stored, budget, least=1)
            yield replace(block, values=(*block.values, *after.values), diff=diff) if diff else block
            if diff:
                next(following)
        elif row.style == "code" and _is_plain(row):
            patch = any(part.kind for part in row.lines[0])
            yield replace(block, diff=number_lines(row.text, budget, patch=patch))
        else:
            yield block


def _is_plain(row: Row) -> bool:
    """Whether a text has no marks that line numbers would lose; those of a patch are the states of its lines."""
    return len(row.lines) == 1 and all(part.kind in _PATCH_KINDS for part in row.lines[0])


def _make_block(placed: PlacedRow, titles: Titles) -> Block:
    return Block(placed.above, placed.key, placed.repeated, titles.find(placed.row.path), (placed,))


def _is_short(group: Sequence[PlacedRow]) -> bool:
    return all(
        placed.row.style in SHORT_STYLES and len(placed.row.lines) == 1 and len(placed.row.text) <= _SHORT_CHARS
        for placed in group
    )


def _fits_a_line(group: Sequence[PlacedRow]) -> bool:
    """Return whether one line keeps the values of a list apart."""
    return _is_short(group) and all(placed.row.literal or "," not in placed.row.text for placed in group)


def _join_table(path: str, group: tuple[PlacedRow, ...], titles: Titles) -> Block | None:
    """Return all values of a list of like objects as one block; None if they need a row each."""
    cells: dict[tuple[int, str], Cell] = {}
    for placed in group:
        _, place, name, is_list = _read_table(placed.row)
        cells[place, name] = Cell((*cells.get((place, name), Cell()).values, placed), is_list)
    keys, count = [*dict.fromkeys(name for _, name in cells)], max(place for place, _ in cells) + 1
    if len(keys) > _MOST_COLUMNS or count < 2 or 2 * len(cells) <= count * len(keys):
        return None
    if not _is_short(group) or not all(_fits_a_line(cell.values) for cell in cells.values() if cell.is_list):
        return None
    above, key = part_path(path)
    return Block(
        above,
        key,
        False,
        titles.find(path),
        group,
        columns=tuple(Column(name.removeprefix("."), titles.find(f"{path}[0]{name}")) for name in keys),
        table=tuple(tuple(cells.get((place, name), Cell()) for name in keys) for place in range(count)),
    )


def _write_name(title: str, above: str, key: str) -> str:
    name = write_shown(above) + write_shown(key)
    return f"{write_shown(title)} {name}" if title else name


def _write_all(values: Sequence[PlacedRow], is_list: bool) -> str:
    texts = ", ".join(map(_write, values))
    return f"[{texts}]" if is_list else texts


def _write(value: PlacedRow) -> str:
    return "".join(write_shown(part.text, breaks=True) for line in value.row.lines for part in line)
