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


@dataclass(frozen=True)
class Block:
    """One row of the page: a value, or with `is_list` or `columns` all values of a list.

    `table` has the objects of a list by the keys in `columns`; an object without a key has None there. `diff` has the
    lines of a text, or of an old text and of the new one in its place. `title` is the schema's name of the value.
    """

    above: str
    key: str
    repeated: bool
    title: str
    values: tuple[PlacedRow, ...]
    is_list: bool = False
    columns: tuple[Column, ...] = ()
    table: tuple[tuple[PlacedRow | None, ...], ...] = ()
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
            return [name, *heads, *(_write(value) if value else "" for row in self.table for value in row)]
        if self.diff:
            return [
                " → ".join([name, *(_write_name("", value.above, value.key) for value in self.values[1:])]),
                write_diff(self.diff),
            ]
        texts = [_write(value) for value in self.values]
        return [name, f"[{', '.join(texts)}]"] if self.is_list else [name, *texts]


class Blocks(NamedTuple):
    """What to check first, and all other values of a call."""

    first: tuple[Block, ...]
    rest: tuple[Block, ...]

    @property
    def hash(self) -> str:
        return hash_display([block.cells for block in (*self.first, *self.rest)])


def make_blocks(view: View, schema: JsonObject | None = None, *, minor: bool = False) -> Blocks:
    """Return every value of a view; `minor` is as in `place_rows`."""
    lists = Counter(path for row in (*view.notable, *view.body, *view.rest) if (path := _read_list(row).path))
    titles, budget = Titles(schema or {}), Budget()
    first, rest = (
        tuple(_number(tuple(_join(place_rows(rows, minor=minor), lists, titles)), budget))
        for rows in (view.notable, (*view.body, *view.rest))
    )
    return Blocks(first, rest)


class _List(NamedTuple):
    """The list that a value stands in, and its place; the key where the entry is an object."""

    path: str
    place: int
    key: str


_NO_LIST = _List("", 0, "")


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


def _read_list(row: Row) -> _List:
    """Return the list that a short value stands in: as its entry, or below one key of its entry."""
    steps = split_path(row.path)
    if steps[1:] and _is_place(steps[-1]):
        return _List("".join(steps[:-1]), int(steps[-1][1:-1]), "")
    if steps[2:] and _is_place(steps[-2]):
        return _List("".join(steps[:-2]), int(steps[-2][1:-1]), steps[-1])
    return _NO_LIST


def _is_place(step: str) -> bool:
    return step[:1] == "[" and step[1:2] != '"'


def _join(rows: Sequence[PlacedRow], lists: Counter[str], titles: Titles) -> Iterator[Block]:
    before = ""
    for path, found in groupby(rows, lambda placed: _read_list(placed.row).path):
        group = tuple(found)
        blocks = [_join_list(path, group, titles)] if path and len(group) == lists[path] else []
        for block in blocks if blocks and blocks[0] else (_make_block(placed, titles) for placed in group):
            if block is not None:
                yield replace(block, repeated=bool(block.above) and block.above == before)
                before = block.above


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


def _join_list(path: str, group: tuple[PlacedRow, ...], titles: Titles) -> Block | None:
    """Return all values of a list as one block; None if they need a row each."""
    short = all(
        placed.row.style in SHORT_STYLES and len(placed.row.lines) == 1 and len(placed.row.text) <= _SHORT_CHARS
        for placed in group
    )
    entries = [_read_list(placed.row) for placed in group]
    if not short:
        return None
    above, key = part_path(path)
    block = Block(above, key, False, titles.find(path), group)
    if not any(entry.key for entry in entries):
        plain = all(placed.row.literal or "," not in placed.row.text for placed in group)
        return replace(block, is_list=True) if plain else None
    keys = [*dict.fromkeys(entry.key for entry in entries)]
    count = entries[-1].place + 1
    if not all(keys) or len(keys) > _MOST_COLUMNS or count < 2 or 2 * len(group) <= count * len(keys):
        return None
    cells = {(entry.place, entry.key): placed for entry, placed in zip(entries, group, strict=True)}
    return replace(
        block,
        columns=tuple(Column(name.removeprefix("."), titles.find(f"{path}[0]{name}")) for name in keys),
        table=tuple(tuple(cells.get((place, name)) for name in keys) for place in range(count)),
    )


def _write_name(title: str, above: str, key: str) -> str:
    name = write_shown(above) + write_shown(key)
    return f"{write_shown(title)} {name}" if title else name


def _write(value: PlacedRow) -> str:
    return "".join(write_shown(part.text, breaks=True) for line in value.row.lines for part in line)
