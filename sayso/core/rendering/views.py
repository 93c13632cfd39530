"""A call as renderers read it, and its view: the values in another order, with marks.

A renderer names paths and positions, never texts.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from sayso.core.canonical_json import JsonObject
from sayso.core.text.invisible import is_prose, write_piece
from sayso.core.text.language import _, cut
from sayso.core.text.summaries import Leaf, collapse, list_values

MAX_PARSED_CHARS = 20_000  # longer texts are shown in full, but not parsed: the flag says so
_PROSE_CHARS = 4_000  # the start of a text shows whether it is prose
_LONG_CHARS = 200
_STATEMENT = re.compile(
    r"^(?:(?: {4}|\t)\s*\S|(?:ALTER|CREATE|DELETE|DROP|INSERT|SELECT|UPDATE|WITH)\b)|[;{]$|(?<=\w)\(.*\)[:;]?$",
    re.MULTILINE,
)
"""What lines of programs and of SQL have: they are indented, or end as a block, a call or a statement does."""

_SEPARATORS = re.compile(r"[^a-z0-9]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True)
class Call:
    """A tool call to render; without a schema, names and values decide alone."""

    tool: str
    args: JsonObject
    schema: JsonObject = field(default_factory=dict)

    @cached_property
    def leaves(self) -> dict[str, Leaf]:
        return {leaf.path: leaf for leaf in list_values(self.args)} if self.args else {}

    @cached_property
    def _keys(self) -> dict[str, list[str]]:
        keys: dict[str, list[str]] = {}
        for key in self.args:
            keys.setdefault(normalize(key), []).append(key)
        return keys

    @cached_property
    def tool_words(self) -> frozenset[str]:
        return frozenset(map(str.lower, _WORD.findall(self.tool)))

    @property
    def title(self) -> str:
        """The tool's name as words: `refund_payment` reads `Refund payment`."""
        words = _WORD.findall(self.tool) if self.tool.isascii() else []
        return " ".join(words).capitalize() if words else self.tool

    def find(self, *names: str) -> list[Leaf]:
        """Return the values of the arguments with these names, and all below them; `fileName` counts as `filename`."""
        keys = [key for name in names for key in self._keys.get(name, ())]
        return [leaf for key in keys for leaf in list_values({key: self.args[key]})]

    def find_texts(self, *names: str) -> list[Leaf]:
        return [leaf for leaf in self.find(*names) if not leaf.literal and read_text(leaf).strip()]


def normalize(key: str) -> str:
    """Return an argument's name in lower case without separators."""
    return _SEPARATORS.sub("", key.lower())


def read_text(leaf: Leaf) -> str:
    """Return a text as stored; a leaf quotes ambiguous texts, such as those with outer blanks, on one line."""
    quoted = not leaf.literal and leaf.text.startswith('"') and "\n" not in leaf.text
    return str(json.loads(leaf.text, strict=False)) if quoted else leaf.text


def name_several(names: Sequence[str]) -> str:
    """Return the first of several names, and how many more there are."""
    if not names[1:]:
        return shorten(names[0])
    return _("%(first)s and %(count)s more", first=shorten(names[0]), count=len(names) - 1)


def shorten(text: str, most: int = 60) -> str:
    """Return a text on one line for a headline or a flag."""
    return cut(" ".join(text[: 4 * most].split()), most)


SHORT_STYLES = ("value", "sentence")  # the styles of values that stand beside their name

SEVERE = 1  # the severity of a flag that a reviewer must not miss; 2 is worth a line


@dataclass(frozen=True)
class Flag:
    """A warning about a call, its severity, of which 1 is the most severe, and its short form for a list."""

    sentence: str
    severity: int = 2
    label: str = ""


@dataclass(frozen=True)
class Mark:
    """A span of a text and its kind, such as `keyword`, `danger` or `added`."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Place:
    """One value in a view: its path, its style, marked spans, and positions where a new line begins."""

    path: str
    style: str = "value"
    marks: Sequence[Mark] = ()
    breaks: Sequence[int] = ()


@dataclass(frozen=True)
class Sketch:
    """What a renderer returns. `effect` names an approval by what it does, such as `EUR 250.00`."""

    headline: str
    notable: Sequence[Place] = ()
    body: Sequence[Place] = ()
    flags: Sequence[Flag] = ()
    effect: str = ""


@dataclass(frozen=True)
class Part:
    """A piece of a value's text with the kind of its mark."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Row:
    """One value to show: the texts of all parts of all lines are the whole value, `stored` is it without quotes."""

    path: str
    literal: bool
    style: str
    lines: tuple[tuple[Part, ...], ...]
    stored: str

    @property
    def text(self) -> str:
        return "".join(part.text for line in self.lines for part in line)


@dataclass(frozen=True)
class View:
    """A rendered call. Each value is in exactly one row of `notable`, `body` and `rest`."""

    renderer: str
    headline: str
    effect: str
    notable: tuple[Row, ...]
    body: tuple[Row, ...]
    rest: tuple[Row, ...]
    flags: tuple[Flag, ...]

    @property
    def severe(self) -> bool:
        return any(flag.severity == SEVERE for flag in self.flags)


def arrange(call: Call, renderer: str, sketch: Sketch, flags: Iterable[Flag]) -> View:
    """Return the view of a sketch; every value that the sketch does not name is appended."""
    leaves = dict(call.leaves)
    notable = tuple(_take(leaves, sketch.notable, 6))
    body = tuple(_take(leaves, sketch.body, len(leaves)))
    rest = tuple(_make_row(leaf, Place(leaf.path)) for leaf in leaves.values())
    all_flags = dict.fromkeys((*flags, *sketch.flags))
    return View(
        renderer,
        shorten(sketch.headline, 120),
        sketch.effect,
        notable,
        body,
        rest,
        tuple(sorted(all_flags, key=lambda flag: flag.severity)),
    )


def _take(leaves: dict[str, Leaf], places: Sequence[Place], most: int) -> Iterable[Row]:
    """Yield up to `most` rows, and remove their values from `leaves`."""
    by_path = {place.path: place for place in reversed(places)}
    for path in [path for path in dict.fromkeys(place.path for place in places) if path in leaves][:most]:
        yield _make_row(leaves.pop(path), by_path[path])


def _make_row(leaf: Leaf, place: Place) -> Row:
    stored = read_text(leaf)
    if place.style == "value" and not leaf.literal and stored == leaf.text:
        place = replace(place, style=_choose_style(stored))
    text = stored if place.style not in SHORT_STYLES and stored.strip() else leaf.text
    whole = ((Part(text),),)
    marked = text == stored and len(place.marks) + len(place.breaks) <= 5_000
    lines = _split(text, place) if marked and (place.marks or place.breaks) else whole
    # A mark inside a word could hide from the search for look-alikes what the whole word shows.
    if lines != whole and _signs([text]) != _signs([part.text for line in lines for part in line]):
        lines = whole
    return Row(leaf.path, leaf.literal, place.style, lines, stored)


def _choose_style(text: str) -> str:
    """Return the style of a plain text: `sentence` or `prose` for words, `code` for other texts of several lines."""
    beginning = text[:_PROSE_CHARS].strip()
    written = is_prose(beginning) and _STATEMENT.search(beginning) is None
    if "\n" in text.strip("\n"):
        return "prose" if written else "code"
    return ("prose" if len(text) > _LONG_CHARS else "sentence") if written else "value"


def _split(text: str, place: Place) -> tuple[tuple[Part, ...], ...]:
    edges = sorted({0, len(text), *place.breaks, *(edge for mark in place.marks for edge in (mark.start, mark.end))})
    inside = [edge for edge in edges if 0 <= edge <= len(text)]
    kinds: dict[int, str] = {}
    for mark in place.marks:
        for edge in inside[bisect_left(inside, mark.start) : bisect_left(inside, mark.end)]:
            kinds[edge] = mark.kind
    begins = {*place.breaks}
    lines: list[list[Part]] = [[]]
    for start, end in pairwise(inside):
        if start in begins and lines[-1]:
            lines.append([])
        lines[-1].append(Part(text[start:end], kinds.get(start, "")))
    return tuple(map(tuple, lines))


def _signs(texts: Sequence[str]) -> str:
    return "".join(write_piece(piece) for text in texts for piece in collapse(text))
