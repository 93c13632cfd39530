"""Two texts in one view: numbered lines, changed words, and long runs of equal lines, which a page may fold."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from sayso.core.text.invisible import has_rtl
from sayso.core.text.summaries import write_shown

LONG_TEXT_CHARS = 60
MOST_WORDS = 1_000
"""Above this number of words between the first and the last change, the comparison would take too long."""
MOST_COMPARED = 300_000
"""The pairs of words that the comparisons of one call read in all; lines beyond are marked as a whole."""
MOST_LINES = 2_000  # longer texts have no numbers, and the comparisons of one call read no more lines in all
_CONTEXT = 3  # equal lines that stay beside a change
_LEAST_HIDDEN = 4

_BLANKS = re.compile(r"\n(?:[^\S\n]*\n){3}")
"""Blank lines that could push a text out of view: they are shown as one sign, without numbers."""
_WORD = re.compile(r"\s+|\S+")
_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))?(?![0-9,])")
_SIGNS = {"-": "removed", "+": "added"}
_HEADERS = ("diff ", "--- ", "+++ ")
_REPLACED = re.compile("(r[rn]*)(a[an]*)")  # the first letters of states


@dataclass
class Budget:
    """How many lines and pairs of words the comparisons of one call may still read."""

    lines: int = MOST_LINES
    words: int = MOST_COMPARED

    def take(self, *, lines: int = 0, words: int = 0) -> bool:
        """Spend from the budget if it is enough; return whether it was."""
        if lines > self.lines or words > self.words:
            return False
        self.lines, self.words = self.lines - lines, self.words - words
        return True


class Piece(NamedTuple):
    """A part of both texts: `same`, `removed` or `added`."""

    state: str
    text: str


class Line(NamedTuple):
    """One line of a text with its number: that of the text before for a removed line. Others of a patch have none.

    A `note` of a patch says that the line above has no line break.
    """

    state: str
    number: int | None
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


class Part(NamedTuple):
    """Lines that stand together; a page may hide those that are the same in both texts."""

    lines: tuple[Line, ...]
    collapsed: bool = False


def compare_texts(before: str, after: str) -> tuple[Piece, ...]:
    """Return the pieces of two texts, or nothing if one of them is empty or both fit on one line."""
    longest = max((before, after), key=len)
    if not before or not after or (len(longest) <= LONG_TEXT_CHARS and "\n" not in before + after):
        return ()
    head, old, new, tail = _trim(_WORD.findall(before), _WORD.findall(after))
    pieces = [Piece("same", "".join(head)), *_compare_words(old, new), Piece("same", "".join(tail))]
    return tuple(piece for piece in pieces if piece.text)


def compare_lines(before: str, after: str, budget: Budget | None = None, *, least: int = 2) -> tuple[Part, ...]:
    """Return both texts line by line; nothing if both have fewer than `least` lines, or one of them too many."""
    old, new = _split(before), _split(after)
    budget = budget or Budget()
    if max(len(old), len(new)) < least or _BLANKS.search(f"{before}\0{after}"):
        return ()
    if not budget.take(lines=len(old) + len(new)):
        return ()
    lines: list[Line] = []
    for tag, begin, end, new_begin, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            lines += _number(old[begin:end], begin + 1, "removed")
        lines += _number(new[new_begin:new_end], new_begin + 1, "same" if tag == "equal" else "added")
    return tuple(_fold(_mark_words(lines, budget)))


def write_diff(parts: Sequence[Part]) -> str:
    """Return the text that the page shows of a comparison, without numbers."""
    pieces = (piece for part in parts for line in part.lines for piece in line.pieces)
    return "".join(write_shown(piece.text, breaks=True) for piece in pieces)


def number_lines(text: str, budget: Budget | None = None, *, patch: bool = False) -> tuple[Part, ...]:
    """Return a text with numbered lines, those of a patch with the numbers of the files; or nothing."""
    lines = _split(text)
    if not 2 <= len(lines) <= MOST_LINES or _BLANKS.search(text) or has_rtl(text):
        return ()
    if patch or any(map(_HUNK.match, lines)):
        return (Part(tuple(_mark_words(list(_number_patch(lines)), budget or Budget(), signs=1))),)
    return (Part(tuple(_number(lines))),)


def _split(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _number(lines: Sequence[str], first: int = 1, state: str = "same") -> Iterator[Line]:
    for number, text in enumerate(lines, first):
        yield Line(state, number, (Piece(state, text),))


def _number_patch(lines: Sequence[str]) -> Iterator[Line]:
    """Yield the lines of a patch. A line beyond the lengths that its hunk declares has a state, but no number."""
    begun = False
    old, new = range(0), range(0)  # the numbers of the lines to come
    for text in lines:
        state, number = _SIGNS.get(text[:1], "same"), None
        if hunk := _HUNK.match(text):
            begun = True
            old, new = (_read_span(hunk[place], hunk[place + 1]) for place in (1, 3))
        elif state == "removed" and old:
            number, old = old[0], old[1:]
        elif state == "added" and new:
            number, new = new[0], new[1:]
        elif old and new and (text[0] == " " or not text.strip("\r\n")):
            number, old, new = new[0], old[1:], new[1:]
        elif text[0] == "\\":
            state = "note"
        else:
            old, new = range(0), range(0)
            state = "same" if not begun or text.startswith(_HEADERS) else state
            begun = begun or text.startswith(("@@", "*** "))
        yield Line(state, number, (Piece(state, text),))


def _read_span(begin: str, length: str | None) -> range:
    return range(int(begin), int(begin) + int(length or 1))


def _mark_words(lines: list[Line], budget: Budget, *, signs: int = 0) -> list[Line]:
    """Mark only the words that differ in a removed line and the added one that replaces it.

    The first `signs` characters of a line stand before its text.
    """
    marked = list(lines)
    for places in _find_replaced(lines):
        before, after = (lines[place].text[signs:] for place in places)
        pieces = _compare_pair(before, after, budget)
        for place in places if pieces else ():
            state, number, _ = lines[place]
            inside = [Piece("same", lines[place].text[:signs]), *pieces]
            shown = (piece for piece in inside if piece.text and piece.state in ("same", state))
            marked[place] = Line(state, number, tuple(shown))
    return marked


def _find_replaced(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the places of a removed line and of the added one that replaces it."""
    states = "".join(line.state[0] for line in lines)
    for block in _REPLACED.finditer(states):
        removed, added = ([place for place in range(*block.span(part)) if states[place] != "n"] for part in (1, 2))
        yield from zip(removed, added, strict=False)


def _compare_pair(before: str, after: str, budget: Budget) -> list[Piece]:
    """Return the pieces of two lines; none if most of them differs, or the budget is spent."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if not budget.take(words=len(old) * len(new)):
        return []
    pieces = _compare_words(old, new)
    kept = sum(len(piece.text.strip()) for piece in pieces if piece.state == "same")
    return pieces if 3 * kept >= max(len(before.strip()), len(after.strip())) else []


def _trim(old: list[str], new: list[str]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the common beginning, what is between it and the common end in both, and that end."""
    shortest = min(len(old), len(new))
    head = next((place for place in range(shortest) if old[place] != new[place]), shortest)
    rest = shortest - head
    tail = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    return old[:head], old[head : len(old) - tail], new[head : len(new) - tail], old[len(old) - tail :]


def _compare_words(old: list[str], new: list[str]) -> list[Piece]:
    if len(old) + len(new) > MOST_WORDS:
        return [Piece("removed", "".join(old)), Piece("added", "".join(new))]
    pieces: list[Piece] = []
    for tag, begin, end, new_begin, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(old[begin:end])))
        else:
            pieces += [Piece("removed", "".join(old[begin:end])), Piece("added", "".join(new[new_begin:new_end]))]
    return pieces


def _fold(lines: Sequence[Line]) -> Iterator[Part]:
    runs = [tuple(run) for _, run in groupby(lines, lambda line: line.state == "same")]
    for place, run in enumerate(runs):
        begin = _CONTEXT if place else 0
        end = len(run) - (_CONTEXT if place < len(runs) - 1 else 0)
        if run[0].state != "same" or len(runs) == 1 or end - begin < _LEAST_HIDDEN:
            yield Part(run)
            continue
        parts = (Part(run[:begin]), Part(run[begin:end], collapsed=True), Part(run[end:]))
        yield from (part for part in parts if part.lines)
