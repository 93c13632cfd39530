"""Look-alike letters outside of the language that a text is written in: the ones that reviewers are warned of.

Pages mark every look-alike letter. A Russian preposition of one letter, or a Turkish word with a dotless i, is ordinary
where the words around it are Russian or Turkish, too. In an address, in a name on its own and between English words it
is not.
"""

import re

from sayso.text.lookalikes import find_lookalikes, has_own_shape, name_script

_WINDOW = 80
_MOST = 500
"""How many letters of a text are checked; all beyond count."""

_WORDS = re.compile(r"[^\W\d_]+")
_EDGES = " .,;:!?()[]{}\"'\xab\xbb\u2013\u2014\u2018\u2019\u201c\u201d\u201e\u2026\xa0\u202f\u2009"
_PARTS = re.compile(r"[^\W\d_]+(?:[-\u2013\u2019'][^\W\d_]+)*|[^\W\d_]{1,2}(?:[./][^\W\d_]{1,2})+")
"""A word, or an abbreviation or a unit of measure; not an address."""

_SHORT = 2
_UNIT = 3
"""The letters of most units, currencies and short names of months, which stand beside a number."""

_AFTER_NUMBER = re.compile(r"\d[.,)]?\s\Z")
_NUMBER = re.compile(r"\s[-(]?\d")
_DOTLESS = "\u0131"
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
        token = _find_token(text, place)
        if token not in known:
            known[token] = _is_explained(text, *token)
        count += not known[token]
    return count


def _find_token(text: str, place: int) -> tuple[int, int]:
    begin = place - len(re.split(r"\s", text[max(0, place - _WINDOW) : place])[-1])
    end = place + len(re.split(r"\s", text[place : place + _WINDOW])[0])
    return begin, end


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
    window = f"{before} {after}"
    others = [word for word in _WORDS.findall(window) if word != token]
    script = scripts.pop()
    return _is_turkic(token, others) if script == "LATIN" else _is_own(token, script, others)


def _is_turkic(token: str, others: list[str]) -> bool:
    """Return whether only a dotless i looks like another letter, among letters of alphabets that have one."""
    odd = {letter for letter in token if not letter.isascii() and not has_own_shape(letter)}
    return odd == {_DOTLESS} and not _TURKIC.isdisjoint({*token, *(letter for word in others for letter in word)})


def _is_own(token: str, script: str, others: list[str]) -> bool:
    """Return whether its letters are those of the words around, most of which are surely of its script.

    One such word is enough for a token of one or two letters.
    """
    own = [word for word in others if any(name_script(sign) == script and has_own_shape(sign) for sign in word)]
    known = {letter for word in own for letter in word.casefold()} | _COMMON
    strange = script == "CYRILLIC" and any(letter.isalpha() and letter not in known for letter in token.casefold())
    ascii_words = sum(1 for word in others if word.isascii())
    return not strange and bool(own) and (len(token) <= _SHORT or len(own) >= ascii_words)
