"""What differs between two texts, word by word."""

import re
from difflib import SequenceMatcher
from typing import NamedTuple

LONG_TEXT_CHARS = 60
MOST_WORDS = 1_000
"""Above this number of words between the first and the last change, the comparison would take too long."""

_WORD = re.compile(r"\s+|\S+")


class Piece(NamedTuple):
    """A part of both texts: `same`, `removed` or `added`."""

    state: str
    text: str


def compare_texts(before: str, after: str) -> tuple[Piece, ...]:
    """Return the pieces of two texts, or nothing if one of them is empty or both fit on one line."""
    longest = max((before, after), key=len)
    if not before or not after or (len(longest) <= LONG_TEXT_CHARS and "\n" not in before + after):
        return ()
    old, new = _WORD.findall(before), _WORD.findall(after)
    shortest = min(len(old), len(new))
    head = next((place for place in range(shortest) if old[place] != new[place]), shortest)
    rest = shortest - head
    tail = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    middle = _compare_words(old[head : len(old) - tail], new[head : len(new) - tail])
    pieces = [Piece("same", "".join(old[:head])), *middle, Piece("same", "".join(old[len(old) - tail :]))]
    return tuple(piece for piece in pieces if piece.text)


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
