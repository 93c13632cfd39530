"""Folding of long blank runs into one sign, such as ⟨40 blank lines⟩, so that no text can be pushed out of view."""

import re

from sayso.text.invisible import Piece, reveal

_BLANK = (
    "[\\0-\\x09\\x0b-\\x20\\x7f-\\xa0\\xad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f"
    "\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb"
    "\\U000e0000-\\U000e0fff]"
)
"""Every character, except the line break, that is invisible."""

_RUN = re.compile(
    rf"(?P<lines>(?:{_BLANK}*+\n){{4,}}+)"  # at least three blank lines
    r"|(?P<indent>(?:(?<=\n)|\A) {1,79}+(?! ))"  # code and JSON may be indented deeply
    rf"|(?P<blanks>{_BLANK}{{16,}}+)"
)
_COLLAPSED = re.compile(rf"{_BLANK}{{16}}|\n{_BLANK}*+\n")
"""What a text has that has such a run."""

_PLURALS = {" ": "spaces", "\t": "tabs"}


def collapse(text: str, *, breaks: bool = True) -> list[Piece]:
    """Return the text in pieces as `reveal` does. Every long run of blanks is one piece, with a sign that counts it."""
    if _COLLAPSED.search(text) is None:
        return reveal(text, breaks=breaks)
    pieces: list[Piece] = []
    begin = 0
    for match in _RUN.finditer(text):
        if match.lastgroup == "indent":
            continue
        start, end = match.span()
        if match.lastgroup == "lines":  # keep the line breaks at both ends: the sign gets its own line
            start, end = (match[0].index("\n") + start + 1 if start else 0), end - 1
            pieces += collapse(text[begin:start], breaks=breaks)  # the previous line may end in a long run
        else:
            pieces += reveal(text[begin:start], breaks=breaks)
        pieces.append(_make_sign(text[start:end], match.lastgroup == "lines"))
        begin = end
    return pieces + reveal(text[begin:], breaks=breaks)


def _make_sign(run: str, lines: bool) -> Piece:
    signs = sorted(set(run))
    if lines:
        words = f"{run.count(chr(10)) + 1} blank lines"
    elif len(signs) > 1:
        words = f"{len(run)} blank characters"
    else:
        words = f"{len(run)} {_PLURALS.get(run[0], f'× U+{ord(run[0]):04X}')}"
    names = [f"U+{ord(sign):04X}" for sign in signs if sign != "\n"]
    return Piece(run, f"⟨{words}⟩", f"{words}{': ' if names else ''}{', '.join(names)}")
