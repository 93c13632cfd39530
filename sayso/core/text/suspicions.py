"""Hidden characters that nothing around them explains: the ones that reviewers are warned of.

Pages show a sign for every hidden character. A warning for each would warn of most ordinary texts: of prices, times and
mails, and of languages whose spelling needs joiners. A character counts unless its script, number, emoji or line break
explains it.
"""

import re
import unicodedata
from collections.abc import Callable

from sayso.core.text.invisible import explains_hyphen, explains_space, find_balanced, find_hidden, has_rtl, is_space

_WINDOW = 80
_BUDGET = 20_000
"""How much work a text may cost: one for a character that its neighbours explain, more for one that needs its line."""

_INDIC = re.compile("[\u0900-\u0dff\u0f00-\u109f\u1780-\u17ff\u1a20-\u1aad\u1b00-\u1b7f\ua980-\ua9df\uaa60-\uaa7f]")
_CURSIVE = re.compile("[\u0600-\u074f\u0750-\u077f\u0840-\u08ff\u1800-\u180a\u1820-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
_MONGOLIAN = re.compile("[\u1800-\u18af]")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17f9\u1950-\u19ff\ua980-\ua9ff\uaa60-\uaa7f\u1b00-\u1b7f]"
)
"""Scripts without spaces between words, in which a zero-width space marks where a line may break."""

_IDEOGRAPH = re.compile("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_PICTURE = re.compile("[\xa9\xae\u203c-\u3299\U0001f000-\U0001faff]")
_NEW_PICTURE = re.compile("[\U0001f000-\U0001faff]")
"""Every unassigned character here is kept for emoji of later versions of Unicode."""

_BRAILLE = re.compile("[\u2801-\u28ff]")
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:{})\U000e007f".format(
        "|".join("".join(chr(0xE0000 + ord(letter)) for letter in region) for region in ("eng", "sct", "wls"))
    )
)
"""The flags of England, Scotland and Wales: the only emoji that are written with tags."""

_ABBREVIATION = re.compile("\u070f[\u0710-\u074f]{1,8}\\Z")
"""A Syriac abbreviation: a mark above its letters, the last of which is not joined to the next word."""

_MARKS = "\u200e\u200f\u061c"
_NUMBER_SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2"
"""Format characters that have ink of their own around or above what follows."""

_NUMBER = re.compile(r"[+\u2212(-]*(?:[^\W\d_]{0,3}[$\xa2-\xa5\u20a0-\u20cf]|-?\d)")
_AFTER_NUMBER = re.compile(r"(?:\d[^\W\d_]?|[%\u066a\xa2-\xa5\u20a0-\u20cf)])[.,]?\Z")
_LATIN_WORD = re.compile(r"[A-Za-z]{4}|[@_\\]")
_RARE_VARIANTS = 3


def count_hidden(text: str) -> int:
    """Return the number of hidden characters that nothing around them explains, without line breaks and tabs."""
    return len(find_suspicious(text))


def find_suspicious(text: str) -> list[int]:
    """Return the places of the hidden characters that nothing around them explains, or that are beyond the budget."""
    places = [place for place in find_hidden(text, breaks=False) if not text.startswith("\r\n", place)]
    if not places:
        return []
    known = {place for flag in _FLAG.finditer(text) for place in range(flag.start() + 1, flag.end())}
    known |= find_balanced(text) | _find_variants(text, places)
    suspicious: list[int] = []
    budget = _BUDGET
    among_lines = "\n" in text and not text.isspace()
    for place in (place for place in places if place not in known):
        sign = text[place]
        budget -= 20 if (is_space(sign) or sign == "\xad" or sign in _MARKS) else 1
        if budget < 0 or not _is_explained(text, place, among_lines):
            suspicious.append(place)
    return suspicious


def _is_explained(text: str, place: int, among_lines: bool) -> bool:
    sign = text[place]
    if is_space(sign):
        return explains_space(sign, *_cut_line(text, place), among_lines=among_lines)
    kind = next((explains for signs, explains in _KINDS if sign in signs), _is_new_picture)
    return kind(text, place)


def _find_sides(text: str, place: int) -> tuple[str, str]:
    return text[place - 1 : place] if place else "", text[place + 1 : place + 2]


def _cut_line(text: str, place: int) -> tuple[str, str]:
    before = text[max(0, place - _WINDOW) : place].rpartition("\n")[2]
    return before, text[place + 1 : place + 1 + _WINDOW].partition("\n")[0].removesuffix("\r")


def _explains_non_joiner(text: str, place: int) -> bool:
    left, right = _find_sides(text, place)
    ends = not right.isalnum() and _ABBREVIATION.search(text[max(0, place - _WINDOW) : place])
    if _CURSIVE.match(left) and (_CURSIVE.match(right) or ends):
        return True
    return _INDIC.match(left) is not None and (_ends_half(text, place) or _INDIC.match(right) is not None)


def _explains_joiner(text: str, place: int) -> bool:
    """Return whether a joiner forms a conjunct, or shows a letter at the edge of a word in its joined form."""
    left, right = _find_sides(text, place)
    if _INDIC.match(left):
        return _ends_half(text, place) or (right != "" and unicodedata.combining(right) == 9)
    joined = _CURSIVE.match(left) or _CURSIVE.match(right)
    return joined is not None and not (left.isalpha() and right.isalpha())


def _ends_half(text: str, place: int) -> bool:
    """Return whether a consonant with a virama comes before this place, and nothing but the same script after it."""
    if place < 2 or unicodedata.combining(text[place - 1]) != 9 or not _INDIC.match(text[place - 2]):
        return False
    right = text[place + 1 : place + 2]
    return not right.isalnum() or _INDIC.match(right) is not None


def _explains_break(text: str, place: int) -> bool:
    """Return whether a zero-width space parts words of a script without spaces."""
    left, right = _find_sides(text, place)
    sides = [_UNSPACED.match(side) is not None for side in (left, right)]
    edges = [side == "" or side.isspace() or side in ".,()\u201c\u201d\xab\xbb0123456789" for side in (left, right)]
    return any(sides) and all(side or edge for side, edge in zip(sides, edges, strict=True)) and right != "\u200b"


def _explains_number_sign(text: str, place: int) -> bool:
    right = text[place + 1 : place + 2]
    return (right.isdigit() and not right.isascii()) or _CURSIVE.match(right) is not None


def _is_new_picture(text: str, place: int) -> bool:
    return unicodedata.category(text[place]) == "Cn" and _NEW_PICTURE.match(text[place]) is not None


def _explains_mark(text: str, place: int) -> bool:
    """Return whether a mark of direction stands at the edge of a number, or at that of a word in a text with both."""
    before, after = _cut_line(text, place)
    left, right = before[-1:], after[:1]
    if (left in _MARKS and left) or (right in _MARKS and right):
        return False
    if left.isalnum() and right.isalnum() and has_rtl(left) == has_rtl(right):
        return False
    if has_rtl(before) or has_rtl(after):
        return True
    token = re.split(r"[\s\xa0\u202f]", before)[-1] + re.split(r"[\s\xa0\u202f]", after)[0]
    number = _NUMBER.match(after) or _AFTER_NUMBER.search(before)
    return number is not None and _LATIN_WORD.search(token) is None


def _find_variants(text: str, places: list[int]) -> set[int]:
    """Return the places of variation selectors that choose a form of one picture, or now and then of an ideograph."""
    pictures: set[int] = set()
    rare: set[int] = set()
    for place in places:
        sign, left = text[place], text[place - 1 : place] if place else ""
        if sign in "\ufe0e\ufe0f" and _PICTURE.match(left):
            pictures.add(place)
        elif (sign in "\ufe00\ufe01\ufe02" or "\U000e0100" <= sign <= "\U000e010f") and _IDEOGRAPH.match(left):
            rare.add(place)
    written = sum(1 for _ in _IDEOGRAPH.finditer(text)) if len(rare) > _RARE_VARIANTS else 0
    return pictures | (rare if len(rare) <= max(_RARE_VARIANTS, written // 10) else set())


_KINDS: tuple[tuple[str, Callable[[str, int], bool]], ...] = (
    ("\u200c", _explains_non_joiner),
    ("\u200d", _explains_joiner),
    ("\u200b", _explains_break),
    ("\xad", lambda text, place: explains_hyphen(*_cut_line(text, place))),
    (_MARKS, _explains_mark),
    ("\u2800", lambda text, place: all(map(_BRAILLE.match, _find_sides(text, place)))),
    ("\u180b\u180c\u180d\u180e\u180f", lambda text, place: any(map(_MONGOLIAN.match, _find_sides(text, place)))),
    (_NUMBER_SIGNS, _explains_number_sign),
)
