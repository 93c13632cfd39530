"""Signs for invisible and look-alike characters, and where ordinary writing has such characters."""

import re
import unicodedata
from typing import NamedTuple

from sayso.core.text.language import mark
from sayso.core.text.lookalikes import find_lookalikes

UNCHECKED = mark("The agent says · not checked")  # the mark of text that comes from an agent and is not checked
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
    plain = _part_digits if has_rtl(text) else lambda part: [Piece(part)]
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


def _part_digits(text: str) -> list[Piece]:
    return [Piece(part, digits=bool(place % 2)) for place, part in enumerate(_NUMBERS.split(text)) if part]


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


_FIXED = "\xa0\u202f"
_TYPOGRAPHIC = "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u205f"
_WIDE = "\u3000"
_MARKS = re.compile("[\u200e\u200f\u061c]")
_EAST_ASIAN = re.compile("[\u2e80-\u2fff\u3001-\u33ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uffee]")

_NUMBER = re.compile(
    r"(?:[+\u2212\u2013\u2014~\xb1(<>\u2248-]|[^\W\d_]{0,3}[$\xa2-\xa5\u0e3f\u20a0-\u20cf]\s?)*[.,]?\d"
)
_AFTER_NUMBER = re.compile(r"\d[.,:%\u2030\u066a\xb0)'\u2019\xb2\xb3]*[\u2013\u2014]?\Z")
_ENDS_PRICE = re.compile(r"\d\s?[$\xa2-\xa5\u20a0-\u20cf]\Z")
_GROUPS = f"{_FIXED}\u2007\u2009"  # spaces that group the digits of a number
_DAY_PERIOD = re.compile(r"\d[:.]\d\d\s(?:[\w\u0300-\u036f]+\u202f)?[\w\u0300-\u036f]+\Z")
"""A time and the first words of the part of the day after it, which CLDR joins by narrow spaces."""

_CODE = re.compile(r"[`{}\\|]|\$[A-Za-z({]|(?:^|\s)-{1,2}[A-Za-z]|&&|\w=|[<>]\S")
"""What commands and code have and prose rarely has."""

_CLOSES = re.compile(r"[:;!?\xbb\u203a%\u2030\u2013\u2014\u2026](?:[\s:;!?\xbb\u203a.,)]|\Z)")
_OPENS = re.compile(r"(?:\A|[\s(\u2019'])[\xab\u2039\u2013\u2014\u2022\xa7\u2116]\Z")
_SHORT = re.compile(r"(?:\A|[\s(\"'\u2019\xab\u201e\u201c.])(?:[^\W\d_]{1,2}|[^\W\d_]{1,6}\.)\Z")
_UNIT = re.compile(r"(?:\A|[\s\d(-])[^\W\d_]{1,3}\Z")
_MONEY = re.compile("[$\xa2-\xa5\u0e3f\u20a0-\u20cf]")
_FIRST_OF_OTHERS = "\u0590"  # scripts from here on have no letters that commands and addresses are written in
_ENDS = frozenset(",.:;!?")
_WORD = re.compile(r"(?:(?<=\s)|\A)[^\W\d_]+(?=[\s.,;:!?)]|\Z)")
_BESIDE_WORDS = re.compile(r"[\w\s.,;:!?()\"'\xab\xbb\u2013\u2014\u2018-\u201f\u2026]", re.ASCII)
_HYPHENATED = re.compile(r"[^\W\d_]{2,}(?:\xad[^\W\d_]{2,})+[.,;:!?)]*")


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
        left, right = before.rstrip(_WIDE), after.lstrip(_WIDE)
        near = len(before) - len(left) + len(after) - len(right) < 4
        return near and (_EAST_ASIAN.match(left[-1:]) or _EAST_ASIAN.match(right[:1])) is not None
    if not before and not after:
        return sign == "\xa0" and among_lines
    if (left and (left in _FIXED or left in _TYPOGRAPHIC)) or (right and (right in _FIXED or right in _TYPOGRAPHIC)):
        return False
    groups = sign in _GROUPS or not (left.isdigit() and right.isdigit())
    if (
        left
        and right
        and groups
        and (_NUMBER.match(after) or _AFTER_NUMBER.search(before) or _ENDS_PRICE.search(before))
    ):
        return True
    is_franc = left == "F" and after.startswith("CFA")  # of West and Central Africa
    is_time = sign == "\u202f" and right.isalpha() and _DAY_PERIOD.search(before) is not None
    ends_line = not right and among_lines and left in _ENDS
    return sign in _FIXED and (ends_line or is_franc or is_time or _is_written(before, after))


def explains_hyphen(before: str, after: str) -> bool:
    """Return whether a soft hyphen parts a long word of a sentence."""
    token = before.rsplit(" ", maxsplit=1)[-1] + "\xad" + after.split(" ", maxsplit=1)[0]
    return _HYPHENATED.fullmatch(token) is not None and sum(map(str.isalpha, token)) >= 12 and is_prose(before + after)


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
    return beside and is_prose(before + after)


def is_prose(line: str) -> bool:
    """Return whether a text has words of a sentence, and nothing of commands or code."""
    return _CODE.search(line) is None and sum(1 for _ in _WORD.finditer(line)) >= 4


_FIRST_STRONG, _RIGHT_TO_LEFT, _CLOSER = "\u2068", "\u2067", "\u2069"
_ANY = re.compile("[\u2066-\u2069]")
_OVERRIDES = re.compile("[\u202a-\u202e]")
_MOST = 1_000  # a text with more isolates is not checked: none of them counts as balanced


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
        if sign[0] in "\u2066\u2067\u2068":
            opened.append(sign.start())
        elif opened:
            pairs.append((opened.pop(), sign.start()))
        else:
            return []
        if len(opened) > 2:
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
