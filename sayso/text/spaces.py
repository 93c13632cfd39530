"""Spaces that do not break or are not as wide as others, and soft hyphens: where ordinary writing has them."""

import re

_FIXED = "\xa0\u202f"
_TYPOGRAPHIC = "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u205f"
_WIDE = "\u3000"
_MARKS = re.compile("[\u200e\u200f\u061c]")
_EAST_ASIAN = re.compile("[\u2e80-\u2fff\u3001-\u33ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uffee]")
_MOST_WIDE = 4

_NUMBER = re.compile(
    r"(?:[+\u2212\u2013\u2014~\xb1(<>\u2248-]|[^\W\d_]{0,3}[$\xa2-\xa5\u0e3f\u20a0-\u20cf]\s?)*[.,]?\d"
)
_AFTER_NUMBER = re.compile(r"\d[.,:%\u2030\u066a\xb0)'\u2019\xb2\xb3]*[\u2013\u2014]?\Z")
_ENDS_PRICE = re.compile(r"\d\s?[$\xa2-\xa5\u20a0-\u20cf]\Z")
_CODE = re.compile(r"[`{}\\|]|\$[A-Za-z({]|(?:^|\s)-{1,2}[A-Za-z]|&&|\w=|[<>]\S")
"""What commands and code have and prose rarely has."""

_CLOSES = re.compile(r"[:;!?\xbb\u203a%\u2030\u2013\u2014\u2026](?:[\s:;!?\xbb\u203a.,)]|\Z)")
_OPENS = re.compile(r"(?:\A|[\s(\u2019'])[\xab\u2039\u2013\u2014\u2022\xa7\u2116]\Z")
_SHORT = re.compile(r"(?:\A|[\s(\"'\u2019\xab\u201e\u201c.])(?:[^\W\d_]{1,2}|[^\W\d_]{1,6}\.)\Z")
_UNIT = re.compile(r"(?:\A|[\s\d(-])[^\W\d_]{1,3}\Z")
_MONEY = re.compile("[$\xa2-\xa5\u0e3f\u20a0-\u20cf]")
_FIRST_OF_OTHERS = "\u0590"
"""Scripts from here on have no letters that commands and addresses are written in."""

_ENDS = frozenset(",.:;!?")
_WORD = re.compile(r"(?:(?<=\s)|\A)[^\W\d_]+(?=[\s.,;:!?)]|\Z)")
_PROSE_WORDS = 4
_BESIDE_WORDS = re.compile(r"[\w\s.,;:!?()\"'\xab\xbb\u2013\u2014\u2018-\u201f\u2026]", re.ASCII)
_HYPHENATED = re.compile(r"[^\W\d_]{2,}(?:\xad[^\W\d_]{2,})+[.,;:!?)]*")
_HYPHENATED_CHARS = 12


def is_space(sign: str) -> bool:
    """Return whether the character is a space other than the common one."""
    return sign in _FIXED or sign in _TYPOGRAPHIC or sign == _WIDE


def explains_space(sign: str, before: str, after: str, *, among_lines: bool) -> bool:
    """Return whether a number, East Asian letters, punctuation or prose on its line explain a space.

    `among_lines` says that its text has several lines, and not only blank ones.
    """
    before, after = _MARKS.sub("", before), _MARKS.sub("", after)
    left, right = before[-1:], after[:1]
    if sign == _WIDE:
        return _explains_wide(before, after)
    if not before and not after:
        return sign == "\xa0" and among_lines
    if (left and (left in _FIXED or left in _TYPOGRAPHIC)) or (right and (right in _FIXED or right in _TYPOGRAPHIC)):
        return False
    if left and right and (_NUMBER.match(after) or _AFTER_NUMBER.search(before) or _ENDS_PRICE.search(before)):
        return True
    ends_line = not right and among_lines and left in _ENDS
    return sign in _FIXED and (ends_line or _is_written(before, after))


def explains_hyphen(before: str, after: str) -> bool:
    """Return whether a soft hyphen parts a long word of a sentence."""
    token = before.rsplit(" ", maxsplit=1)[-1] + "\xad" + after.split(" ", maxsplit=1)[0]
    return (
        _HYPHENATED.fullmatch(token) is not None
        and sum(map(str.isalpha, token)) >= _HYPHENATED_CHARS
        and _is_prose(before + after)
    )


def _explains_wide(before: str, after: str) -> bool:
    left, right = before.rstrip(_WIDE), after.lstrip(_WIDE)
    near = len(before) - len(left) + len(after) - len(right) < _MOST_WIDE
    return near and (_EAST_ASIAN.match(left[-1:]) or _EAST_ASIAN.match(right[:1])) is not None


def _is_written(before: str, after: str) -> bool:
    """Return whether typography puts a space that does not break here."""
    left, right = before[-1:], after[:1]
    line = f"{before} {after}"
    if _CODE.search(line):
        return False
    if (left.strip() and _CLOSES.match(after)) or (right.strip() and _OPENS.search(before)):
        return True
    if left >= _FIRST_OF_OTHERS and right >= _FIRST_OF_OTHERS:
        return True
    if right.isalpha() and (_SHORT.search(before) or (any(map(str.isdigit, line)) and _UNIT.search(before))):
        return True
    if left and right and (_MONEY.match(right) or _MONEY.match(left)):
        return True
    beside = all(side == "" or side.isalpha() or _BESIDE_WORDS.match(side) for side in (left, right))
    return beside and _is_prose(before + after)


def _is_prose(line: str) -> bool:
    return _CODE.search(line) is None and sum(1 for _ in _WORD.finditer(line)) >= _PROSE_WORDS
