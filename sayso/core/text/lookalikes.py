"""Letters that look like others: of two scripts in one word, like ASCII without being it, or built from accents.

Pages mark every look-alike letter. Reviewers are warned of those outside of the language around them: a Russian
preposition is ordinary between Russian words, and not in an address, in a name on its own or between English words.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

_WORD = re.compile(r"\w(?:\w|[\u0300-\u036f])*")
_ACCENTED = re.compile(r"\w[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]+")
_BETWEEN = re.compile(r"(?<=\w)[^\w\s\x00-\x7f](?=\w)")
_STRUCTURE = frozenset("/.:@?#&=\\-")
"""ASCII signs that part addresses and paths."""

_TYPOGRAPHIC = frozenset("\u2013\u2014\u2212")
"""Dashes and the minus sign: longer than a hyphen, and ordinary between words and numbers."""

_SCRIPTS_LIKE_ASCII = frozenset(
    ("COMMON", "INHERITED", "LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "COPTIC", "CHEROKEE", "LISU", "OSAGE")
) | {"CANADIAN_ABORIGINAL", "DESERET", "TIFINAGH", "GOTHIC", "OLD_ITALIC", "WARANG_CITI", "ELBASAN"}
"""Scripts in which a whole word can pass for an English one."""

_EAST_ASIAN = frozenset(("HAN", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"))
"""Scripts that ordinary words combine with each other and with Latin (UTS 39, "highly restrictive")."""

_MOST_ACCENTS = 30
"""More accents on one letter are marked unread: to sort them takes quadratic time (UAX 15, stream-safe text)."""

_SHORT_CHARS = 64  # longer words are not kept from one text to the next: they would fill the memory


def find_lookalikes(text: str) -> list[int]:
    """Return the positions of letters and accents that are not what they look like, in order.

    The rules follow Unicode Technical Standard 39: words of two scripts, and words whose skeleton is ASCII. An accent
    that is written apart from its letter, and the third and further accents of a letter, count too.
    """
    if text.isascii():
        return []
    return sorted({*_find_accents(text), *_find_words(text), *_find_separators(text)})


def has_stacked_accents(text: str) -> bool:
    """Return whether a letter has so many accents that normalization, which sorts them, takes quadratic time."""
    if text.isascii():
        return False
    accents = {sign for sign in set(text) if unicodedata.combining(unicodedata.normalize("NFKD", sign)[0])}
    if not accents:
        return False
    return re.search(f"[{re.escape(''.join(sorted(accents)))}]{{{_MOST_ACCENTS + 1}}}", text) is not None


def _find_words(text: str) -> Iterator[int]:
    words = {word for word in {*_WORD.findall(text)} if not word.isascii()}
    places = {word: _mark_short(word) if len(word) <= _SHORT_CHARS else _mark(word) for word in words}
    for match in _WORD.finditer(text) if any(places.values()) else ():
        yield from (match.start() + place for place in places.get(match.group(), ()))


def _mark(word: str) -> tuple[int, ...]:
    signs = set(word)
    scripts = {sign: name_script(sign) for sign in signs}
    known = {*scripts.values()} - {"COMMON", "INHERITED"}
    foreign = {sign for sign in signs if not sign.isascii()}
    mixed = known - {_find_base(word, scripts, known)} if len(known) > 1 else set()
    if mixed and not (known - {"LATIN"} <= _EAST_ASIAN):
        marked = {sign for sign in foreign if scripts[sign] in mixed}
    elif {*scripts.values()} <= _SCRIPTS_LIKE_ASCII and foreign <= _ascii_likes():
        marked = foreign
    else:
        marked = {sign for sign in foreign if scripts[sign] == "COMMON" and sign in _ascii_likes()}
    return tuple(place for place, sign in enumerate(word) if sign in marked) if marked else ()


_mark_short = lru_cache(maxsize=4096)(_mark)


def _find_base(word: str, scripts: dict[str, str], known: set[str]) -> str:
    """Return the script that the letters of others are strange in: Latin, or the one of most letters."""
    if "LATIN" in known:
        return "LATIN"
    counts: Counter[str] = Counter()
    for sign, count in Counter(word).items():
        if scripts[sign] in known:
            counts[scripts[sign]] += count
    return counts.most_common(1)[0][0]


def _find_accents(text: str) -> Iterator[int]:
    for match in _ACCENTED.finditer(text):
        written, start = match.group(), match.start() + 1
        apart = len(written) > _MOST_ACCENTS or len(unicodedata.normalize("NFC", written)) < len(written)
        yield from range(start if apart else start + 2, match.end())


def _find_separators(text: str) -> Iterator[int]:
    """Yield signs between letters that look like parts of addresses, but not full-width ones in East Asian text."""
    for match in _BETWEEN.finditer(text):
        sign, place = match.group(), match.start()
        if _is_wide(sign):
            narrow = not (_is_wide(text[place - 1]) or _is_wide(text[place + 1]))
            if narrow and unicodedata.normalize("NFKC", sign) in _STRUCTURE:
                yield place
        elif sign in _like(_STRUCTURE.__contains__) and sign not in _TYPOGRAPHIC:
            yield place


def _is_wide(sign: str) -> bool:
    return unicodedata.east_asian_width(sign) in "WF"


@lru_cache(maxsize=4096)
def name_script(sign: str) -> str:
    """Return the name of a character's script, COMMON for signs of all scripts."""
    from confusable_homoglyphs import categories

    script = categories.alias(unicodedata.normalize("NFKC", sign)[:1] or sign)
    return str(script) if script is not None else "COMMON"


def has_own_shape(sign: str) -> bool:
    """Return whether the character looks like no ASCII letter or digit."""
    return not sign.isascii() and sign not in _ascii_likes()


def _ascii_likes() -> frozenset[str]:
    """Return every character that looks like one ASCII letter or digit."""
    return _like(str.isalnum)


@cache
def _like(fits: Callable[[str], bool]) -> frozenset[str]:
    from confusable_homoglyphs.confusables import confusables_data

    return frozenset(
        sign
        for sign, twins in confusables_data.items()
        if not sign.isascii() and any(len(twin["c"]) == 1 and twin["c"].isascii() and fits(twin["c"]) for twin in twins)
    )


_WINDOW = 80
_MOST = 500  # how many letters of a text are checked; all beyond count
_WORDS = re.compile(r"[^\W\d_]+")
_EDGES = " .,;:!?()[]{}\"'\xab\xbb\u2013\u2014\u2018\u2019\u201c\u201d\u201e\u2026\xa0\u202f\u2009"
_PARTS = re.compile(r"[^\W\d_]+(?:[-\u2013\u2019'][^\W\d_]+)*|[^\W\d_]{1,2}(?:[./][^\W\d_]{1,2})+")
"""A word, or an abbreviation or a unit of measure; not an address."""

_UNIT = 3  # the letters of most units, currencies and short names of months, which stand beside a number
_AFTER_NUMBER = re.compile(r"\d[.,)]?\s\Z")
_NUMBER = re.compile(r"\s[-(]?\d")
_TURKIC = frozenset("\u011f\u011e\u015f\u015e\xe7\xc7\xf6\xd6\xfc\xdc\u0130\u0259\u018f\xf1")
"""Letters of the alphabets that have a dotless i, too."""

_COMMON = frozenset("\u0430\u0431\u0432\u0433\u0435\u043a\u043c\u043d\u043e\u043f\u0440\u0441\u0442\u0443\u0445")
"""The letters of all Cyrillic alphabets that look like Latin ones or digits."""


def count_lookalikes(text: str) -> int:
    """Return the number of look-alike letters that the language around them does not explain."""
    places = find_lookalikes(text)
    known: dict[tuple[int, int], bool] = {}
    count = max(0, len(places) - _MOST)
    for place in places[:_MOST]:
        begin = place - len(re.split(r"\s", text[max(0, place - _WINDOW) : place])[-1])
        token = begin, place + len(re.split(r"\s", text[place : place + _WINDOW])[0])
        if token not in known:
            known[token] = _is_explained(text, *token)
        count += not known[token]
    return count


def _is_explained(text: str, begin: int, end: int) -> bool:
    token = text[begin:end].strip(_EDGES)
    if not _PARTS.fullmatch(token):
        return False
    scripts = {name_script(letter) for letter in token if letter.isalpha()}
    if len(scripts) != 1:
        return False
    before, after = text[max(0, begin - _WINDOW) : begin], text[end : end + _WINDOW]
    if sum(map(str.isalpha, token)) <= _UNIT and (_AFTER_NUMBER.search(before) or _NUMBER.match(after)):
        return True
    others = [word for word in _WORDS.findall(f"{before} {after}") if word != token]
    script = scripts.pop()
    if script != "LATIN":
        return _is_own(token, script, others)
    # Only a dotless i looks like another letter, among letters of alphabets that have one.
    odd = {letter for letter in token if not letter.isascii() and not has_own_shape(letter)}
    return odd == {"\u0131"} and not _TURKIC.isdisjoint({*token, *(letter for word in others for letter in word)})


def _is_own(token: str, script: str, others: list[str]) -> bool:
    """Return whether its letters are those of the words around, mostly of its script; of a short one's one word."""
    own = [word for word in others if any(name_script(sign) == script and has_own_shape(sign) for sign in word)]
    known = {letter for word in own for letter in word.casefold()} | _COMMON
    strange = script == "CYRILLIC" and any(letter.isalpha() and letter not in known for letter in token.casefold())
    ascii_words = sum(1 for word in others if word.isascii())
    return not strange and bool(own) and (len(token) <= 2 or len(own) >= ascii_words)
