"""Signs for invisible characters, so that reviewers see everything they approve."""

import re
import unicodedata
from dataclasses import dataclass

UNCHECKED = "The agent says · not checked"
"""The mark of text that comes from an agent and is not checked."""

_INVISIBLE_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc\U0001107f\U00016fe4\U0001d159")
"""Invisible characters in the categories of letters, marks and symbols."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_SOFT = {"\n": "↵", "\t": "⇥"}
"""Line breaks and tabs are visible as layout. A faint sign distinguishes them from wrapping."""


@dataclass(frozen=True)
class Piece:
    """A part of a text: plain, or one hidden character with its sign."""

    text: str
    sign: str = ""
    name: str = ""
    soft: bool = False


def reveal(text: str, *, breaks: bool = True) -> list[Piece]:
    """Return the text in pieces, each hidden character its own; without `breaks`, breaks and tabs are plain text."""
    hidden = {sign for sign in set(text) if _is_hidden(sign) and (breaks or sign not in _SOFT)}
    if not hidden:
        return [Piece(text)] if text else []
    pieces: list[Piece] = []
    begin = 0
    for found in re.finditer(f"[{re.escape(''.join(sorted(hidden)))}]", text):
        place = found.start()
        if begin < place:
            pieces.append(Piece(text[begin:place]))
        pieces.append(_piece_of(text[place]))
        begin = place + 1
    if begin < len(text):
        pieces.append(Piece(text[begin:]))
    return pieces


def write_signs(text: str) -> str:
    """Return the text with signs for its hidden characters, for titles and options without markup."""
    return "".join(piece.text if piece.soft else piece.sign or piece.text for piece in reveal(text))


def count_hidden(text: str) -> int:
    """Return the number of hidden characters, without line breaks and tabs."""
    return sum(1 for piece in reveal(text) if piece.sign and not piece.soft)


def _is_hidden(sign: str) -> bool:
    if sign == " ":
        return False
    variation = "\ufe00" <= sign <= "\ufe0f" or "\U000e0100" <= sign <= "\U000e01ef" or "\u180b" <= sign <= "\u180f"
    return variation or sign in _INVISIBLE_LETTERS or unicodedata.category(sign) in _HIDDEN_CATEGORIES


def _piece_of(sign: str) -> Piece:
    if sign in _SOFT:
        return Piece(sign, _SOFT[sign], "line break" if sign == "\n" else "tab", soft=True)
    name = unicodedata.name(sign, "control character" if unicodedata.category(sign) == "Cc" else "unnamed character")
    return Piece(sign, f"⟨U+{ord(sign):04X}⟩", name.lower())
