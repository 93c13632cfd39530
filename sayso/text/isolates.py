"""Directional isolates that are closed on their line, and that the letters in them explain."""

import re

from sayso.text.invisible import has_rtl

_OPENERS = "\u2066\u2067\u2068"
_FIRST_STRONG, _RIGHT_TO_LEFT, _CLOSER = "\u2068", "\u2067", "\u2069"
_ANY = re.compile("[\u2066-\u2069]")
_OVERRIDES = re.compile("[\u202a-\u202e]")
_DEEPEST = 2
_MOST = 1_000
"""A text with more isolates is not checked: none of them counts as balanced."""


def find_balanced(text: str) -> set[int]:
    """Return the places of isolates in lines that close all of them, without overrides, around words of their own."""
    places: set[int] = set()
    if not 0 < sum(1 for _ in _ANY.finditer(text)) <= _MOST:
        return places
    start = 0
    for line in text.splitlines(keepends=True):
        if _ANY.search(line) and not _OVERRIDES.search(line):
            places.update(start + place for place in _find_pairs(line))
        start += len(line)
    return places


def _find_pairs(line: str) -> list[int]:
    """Return the places of all isolates of a line, or none if one is open, empty or in the middle of a word."""
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for sign in _ANY.finditer(line):
        if sign[0] in _OPENERS:
            opened.append(sign.start())
        elif opened:
            pairs.append((opened.pop(), sign.start()))
        else:
            return []
        if len(opened) > _DEEPEST:
            return []
    both = has_rtl(line)
    fine = not opened and all(_fits(line, begin, end, both) for begin, end in pairs)
    return [place for pair in pairs for place in pair] if fine else []


def _fits(line: str, begin: int, end: int, both: bool) -> bool:
    content = line[begin + 1 : end]
    if (
        not any(sign.isalnum() for sign in content)
        or line[begin - 1 : begin].isalnum()
        or line[end + 1 : end + 2].isalnum()
    ):
        return False
    if line[begin] == _RIGHT_TO_LEFT:
        return has_rtl(content)
    return both or line[begin] == _FIRST_STRONG
