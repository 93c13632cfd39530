"""Views of a call: its values in another order, with marks. A renderer names paths and positions, never texts."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sayso.rendering.calls import Call, read_text, shorten
from sayso.text.blanks import collapse
from sayso.text.invisible import write_piece
from sayso.text.summaries import Leaf

SEVERE = 1
"""The severity of a flag that a reviewer must not miss; 2 is worth a line."""

_MOST_NOTABLE = 6
_HEADLINE_CHARS = 120
_MOST_MARKS = 5_000


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
    """One value to show: the texts of all parts of all lines are the whole value."""

    path: str
    literal: bool
    style: str
    lines: tuple[tuple[Part, ...], ...]

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
        """Whether a flag has severity 1."""
        return any(flag.severity == SEVERE for flag in self.flags)


def arrange(call: Call, renderer: str, sketch: Sketch, flags: Iterable[Flag]) -> View:
    """Return the view of a sketch; every value that the sketch does not name is appended."""
    leaves = dict(call.leaves)
    notable = tuple(_take(leaves, sketch.notable, _MOST_NOTABLE))
    body = tuple(_take(leaves, sketch.body, len(leaves)))
    rest = tuple(_make_row(leaf, Place(leaf.path)) for leaf in leaves.values())
    all_flags = dict.fromkeys((*flags, *sketch.flags))
    return View(
        renderer,
        shorten(sketch.headline, _HEADLINE_CHARS),
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
    text = stored if place.style != "value" and stored.strip() else leaf.text
    whole = ((Part(text),),)
    marked = text == stored and len(place.marks) + len(place.breaks) <= _MOST_MARKS
    lines = _split(text, place) if marked and (place.marks or place.breaks) else whole
    # A mark inside a word could hide from the search for look-alikes what the whole word shows.
    if lines != whole and _signs([text]) != _signs([part.text for line in lines for part in line]):
        lines = whole
    return Row(leaf.path, leaf.literal, place.style, lines)


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
