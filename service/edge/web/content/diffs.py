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
"""The pairs of words that one comparison of lines reads in all; lines beyond are marked as a whole."""
MOST_LINES = 2_000  # longer texts have no numbers
_CONTEXT = 3  # equal lines that stay beside a change
_LEAST_HIDDEN = 4

_BLANKS = re.compile(r"\n(?:[^\S\n]*\n){3}")
"""Blank lines that could push a text out of view: they are shown as one sign, without numbers."""
_WORD = re.compile(r"\s+|\S+")
_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,[0-9]+)? \+([0-9]{1,9})")


@dataclass
class Budget:
    """How many pairs of words a comparison may still read."""

    remaining: int

    def take(self, count: int) -> bool:
        """Spend from the budget; return whether it was enough."""
        self.remaining -= count
        return self.remaining >= 0


class Piece(NamedTuple):
    """A part of both texts: `same`, `removed` or `added`."""

    state: str
    text: str


class Line(NamedTuple):
    """One line of a text with its number: that of the text before for a removed line. Others of a patch have none."""

    state: str
    number: int | None
    pieces: tuple[Piece, ...]


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


def compare_lines(before: str, after: str) -> tuple[Part, ...]:
    """Return both texts line by line; nothing if both have one line, or one of them too many."""
    old, new = _split(before), _split(after)
    if max(len(old), len(new)) < 2 or len(old) + len(new) > MOST_LINES or _BLANKS.search(f"{before}\0{after}"):
        return ()
    lines: list[Line] = []
    budget = Budget(MOST_COMPARED)
    for tag, begin, end, new_begin, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            pairs = enumerate(new[new_begin:new_end], new_begin + 1)
            lines += [Line("same", number, (Piece("same", text),)) for number, text in pairs]
        else:
            lines += _compare_block(old[begin:end], new[new_begin:new_end], begin, new_begin, budget)
    return tuple(_fold(lines))


def write_diff(parts: Sequence[Part]) -> str:
    """Return the text that the page shows of a comparison, without numbers."""
    pieces = (piece for part in parts for line in part.lines for piece in line.pieces)
    return "".join(write_shown(piece.text, breaks=True) for piece in pieces)


def number_lines(text: str) -> tuple[Part, ...]:
    """Return a text with numbered lines, those of a patch with the numbers of the files; or nothing."""
    lines = _split(text)
    if not 2 <= len(lines) <= MOST_LINES or _BLANKS.search(text) or has_rtl(text):
        return ()
    patch = any(map(_HUNK.match, lines))
    return (Part(tuple(_number_patch(lines) if patch else _number(lines))),)


def _split(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _number(lines: Sequence[str]) -> Iterator[Line]:
    for number, text in enumerate(lines, 1):
        yield Line("same", number, (Piece("same", text),))


def _number_patch(lines: Sequence[str]) -> Iterator[Line]:
    old = new = 0
    for text in lines:
        hunk = _HUNK.match(text)
        state = {"-": "removed", "+": "added"}.get(text[:1], "same") if old or new else "same"
        number = None
        if hunk is not None:
            old, new = int(hunk[1]), int(hunk[2])
        elif text.startswith(("diff ", "--- ", "+++ ", "\\")):
            state = "same"
        elif old or new:
            number = old if state == "removed" else new
            old, new = old + (state != "added"), new + (state != "removed")
        yield Line(state, number, (Piece(state, text),))


def _compare_block(
    old: Sequence[str], new: Sequence[str], begin: int, new_begin: int, budget: Budget
) -> Iterator[Line]:
    """Yield removed lines, then added ones; a line and the one that replaces it mark only the words that differ."""
    pairs = [_compare_pair(before, after, budget) for before, after in zip(old, new, strict=False)]
    for state, lines, first in (("removed", old, begin), ("added", new, new_begin)):
        for place, text in enumerate(lines):
            pieces = [piece for piece in pairs[place] if piece.state in ("same", state)] if place < len(pairs) else []
            yield Line(state, first + place + 1, tuple(pieces) or (Piece(state, text),))


def _compare_pair(before: str, after: str, budget: Budget) -> list[Piece]:
    """Return the pieces of two lines; none if most of them differs, or the budget is spent."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if not budget.take(len(old) * len(new)):
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
