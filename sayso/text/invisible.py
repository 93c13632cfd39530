"""Signs for invisible and look-alike characters, so that reviewers see everything they approve."""

import re
import unicodedata
from typing import NamedTuple

from sayso.text.language import mark
from sayso.text.lookalikes import find_lookalikes

UNCHECKED = mark("The agent says · not checked")
"""The mark of text that comes from an agent and is not checked."""

_INVISIBLE_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc\U0001107f\U00016fe4\U0001d159")
"""Invisible characters in the categories of letters, marks and symbols."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_SOFT = {"\n": "↵", "\t": "⇥"}
"""Line breaks and tabs are visible as layout. A faint sign distinguishes them from wrapping."""


_EMOJI = re.compile(
    "(?:{one}(?:\u200d{one})*)|[0-9#*]\ufe0f?\u20e3".format(
        one="[\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934-\u2b55\u3030\u303d\u3297\u3299"
        "\U0001f000-\U0001faff]\ufe0f?[\U0001f3fb-\U0001f3ff]?"
    )
)
"""An emoji with its colour and skin tone, or several that are joined to one picture (UTS 51)."""


_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]")
_NUMBERS = re.compile(r"((?<![0-9])[0-9]+(?:[-./:,][0-9]+)+)")
"""Such as dates and times, which a right-to-left line would show with their parts in the other order."""


class Piece(NamedTuple):
    """A part of a text: plain, one hidden character with its sign, or one `alike` letter that the sign follows.

    In a text with right-to-left letters `digits` with separators are a part, which pages show in its order.
    """

    text: str
    sign: str = ""
    name: str = ""
    soft: bool = False
    alike: bool = False
    digits: bool = False


def reveal(text: str, *, breaks: bool = True) -> list[Piece]:
    """Return the text in pieces, each marked character its own; without `breaks`, breaks and tabs are plain text."""
    plain = _part_digits if has_rtl(text) else _keep
    marked = dict.fromkeys(find_hidden(text, breaks=breaks), False) | dict.fromkeys(find_lookalikes(text), True)
    pieces: list[Piece] = []
    begin = 0
    for place, alike in sorted(marked.items()):
        if begin < place:
            pieces += plain(text[begin:place])
        pieces.append(_piece_of(text[place], alike=alike))
        begin = place + 1
    if begin < len(text):
        pieces += plain(text[begin:])
    return pieces


def has_rtl(text: str) -> bool:
    """Return whether a text has letters that are written from right to left."""
    return _RTL.search(text) is not None


def _keep(text: str) -> list[Piece]:
    return [Piece(text)]


def _part_digits(text: str) -> list[Piece]:
    parts = _NUMBERS.split(text)
    return [Piece(part, digits=bool(place % 2)) for place, part in enumerate(parts) if part]


def write_signs(text: str) -> str:
    """Return the text with signs for its marked characters, for titles and options without markup."""
    return "".join(write_piece(piece) for piece in reveal(text))


def write_piece(piece: Piece) -> str:
    """Return a piece without markup; breaks and tabs stay themselves."""
    if piece.alike:
        return piece.text + piece.sign
    return piece.text if piece.soft else piece.sign or piece.text


def find_hidden(text: str, *, breaks: bool) -> list[int]:
    """Return the places of hidden characters in order, with line breaks and tabs only if `breaks` says so."""
    if text.isascii() and text.isprintable():
        return []
    hidden = {sign for sign in set(text) if _is_hidden(sign) and (breaks or sign not in _SOFT)}
    if not hidden:
        return []
    places = (match.start() for match in re.finditer(f"[{re.escape(''.join(sorted(hidden)))}]", text))
    inside: set[int] = set()
    if not hidden.isdisjoint("\u200d\ufe0f"):
        inside.update(*(range(*match.span()) for match in _EMOJI.finditer(text)))
    return [place for place in places if place not in inside]


def _is_hidden(sign: str) -> bool:
    if sign == " ":
        return False
    variation = "\ufe00" <= sign <= "\ufe0f" or "\U000e0100" <= sign <= "\U000e01ef" or "\u180b" <= sign <= "\u180f"
    return variation or sign in _INVISIBLE_LETTERS or unicodedata.category(sign) in _HIDDEN_CATEGORIES


def _piece_of(sign: str, *, alike: bool) -> Piece:
    if sign in _SOFT:
        return Piece(sign, _SOFT[sign], "line break" if sign == "\n" else "tab", soft=True)
    name = unicodedata.name(sign, "control character" if unicodedata.category(sign) == "Cc" else "unnamed character")
    shown = alike and not unicodedata.combining(sign)
    return Piece(sign, f"⟨U+{ord(sign):04X}⟩", name.lower(), alike=shown)
