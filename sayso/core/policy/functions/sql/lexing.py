"""Tokens of SQL, and the budget of a text before it is parsed.

Only spellings that a database and the parser read alike are tokens; all others are refused.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from sayso.core.policy.functions.faults import Uncomputable
from sayso.core.policy.functions.sql.vocabulary import parse_list

MOST_TOKENS = 1_000
MOST_NESTED = 16
"""The limit of open parentheses, brackets and `case` at one place."""
MOST_INDEXES = 4
"""The limit of brackets one after another, as in `a[1][2]`: the parser copies what is before each."""
MOST_QUERIES = 60
_NESTED_TYPES = frozenset(("array", "map", "struct"))

_BACKTICKS = parse_list("athena bigquery clickhouse databricks mysql spark sqlite")
_DOLLARS = frozenset(("clickhouse", "duckdb", "postgres", "redshift", "snowflake"))
_BRACKETS = {"tsql": r"\[(?:[^\]]|\]\])*+\]", "sqlite": r"\[[^\]]*\](?!\])"}
_TRIPLE = frozenset(("", "bigquery"))
_TEXT_IN_DOUBLE = frozenset(("bigquery", "databricks", "mysql", "spark"))
"""Databases in which double quotes hold a text."""
_SIGNS = ("<>", "!=", "<=", ">=", "(", ")", ",", ".", ";", "*", "+", "-", "/", "%", "=", "<", ">")
_COLONS = ("athena", "databricks", "mysql", "oracle", "postgres", "presto", "redshift", "spark", "sqlite", "trino")
_MORE_SIGNS = {
    "||": ("*all",),
    "::": ("clickhouse", "databricks", "duckdb", "postgres", "redshift", "snowflake"),
    "->": ("athena", "clickhouse", "databricks", "duckdb", "mysql", "postgres", "presto", "spark", "sqlite", "trino"),
    "->>": ("duckdb", "mysql", "postgres", "sqlite"),
    "=>": ("databricks", "duckdb", "postgres", "snowflake", "spark"),
    "[": ("*all", "-tsql", "-sqlite", "-mysql", "-oracle"),
    "]": ("*all", "-tsql", "-sqlite", "-mysql", "-oracle"),
    ":": (*_COLONS, "bigquery", "clickhouse", "duckdb", "snowflake"),
    "?": ("*all",),
    "==": ("clickhouse", "databricks", "duckdb", "spark", "sqlite"),
    "<=>": ("databricks", "mysql", "spark"),
    "//": ("duckdb",),
    "<<": ("bigquery", "mysql", "postgres", "sqlite"),
    ">>": ("*all", "-oracle", "-tsql"),
    "&": ("*all", "-oracle"),
    "|": ("*all", "-oracle"),
    "^": ("bigquery", "mysql", "tsql"),
    "~": ("bigquery", "databricks", "duckdb", "mysql", "postgres", "redshift", "spark", "sqlite", "tsql"),
    **dict.fromkeys(("#>>", "#>", "@>", "<@", "?|", "?&", "~*", "!~*", "!~"), ("postgres",)),
    "&&": ("mysql", "postgres"),
}
_PREFIXES = {
    "e": ("postgres", "redshift", "duckdb"),
    "n": ("mysql", "oracle", "tsql"),
    "b": ("bigquery", "mysql", "postgres"),
    "r": ("bigquery", "databricks", "spark"),
    "x": ("clickhouse", "databricks", "mysql", "postgres", "spark", "sqlite"),
}
_TYPED = frozenset(("date", "time", "timestamp", "datetime", "interval", "json"))


_OUTER_JOIN = "(+)"
"""A sign of Oracle that is three tokens here."""


class Token(NamedTuple):
    """A token: `kind` is `word`, `name` (in quotes), `text`, `number`, `parameter` or `sign`."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in small letters; empty for other tokens."""
        return self.text.lower() if self.kind == "word" else ""


def list_tokens(text: str, database: str) -> list[Token]:
    """Return the tokens without blanks and comments; an empty database takes only what all databases read alike."""
    pattern = _make_pattern(database)
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        match = pattern.match(text, place)
        if match is None:
            where = f"{database} may read" if database else "databases read"
            advice = "" if database else '; name the database, as in sql(args.query, "postgres")'
            raise Uncomputable(f"it has {text[place : place + 2]!r}, which {where} differently{advice}")
        kind = match.lastgroup or ""
        if kind not in ("blank", "comment"):
            if len(tokens) >= MOST_TOKENS:
                raise Uncomputable(f"it has more than {MOST_TOKENS} tokens")
            tokens.append(Token(kind, match[0], place, match.end()))
            _check_token(tokens, database)
        place = match.end()
    return tokens


@cache
def _make_pattern(database: str) -> re.Pattern[str]:
    names = [r'"(?:[^"]|"")*+"'] if database not in ("", *_TEXT_IN_DOUBLE) else []
    prefixes = "".join(prefix for prefix, known in _PREFIXES.items() if database in known)
    texts = [rf"(?i:[{prefixes}])?'(?:[^']|'')*+'" if prefixes else r"'(?:[^']|'')*+'"]
    texts += [r'"(?:[^"]|"")*+"'] if database in _TEXT_IN_DOUBLE else []
    names += [r"`(?:[^`]|``)++`"] if database in _BACKTICKS else []
    names += [_BRACKETS[database]] if database in _BRACKETS else []
    if database in _DOLLARS:
        texts.append(r"\$\$.*?\$\$" if database == "snowflake" else r"\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$")
    word = r"[^\W\d][\w$]*" if database else r"[^\W\d]\w*"
    signs = sorted(_list_signs(database), key=len, reverse=True)
    groups = {
        "blank": r"[ \t\n]+",
        "comment": r"--(?:[ \t][^\n]*)?(?=\n|\Z)|/\*(?![+!]|M!)(?:(?!\*/|/\*).)*\*/",
        "text": "|".join(texts),
        "name": "|".join(names) or r"(?!)",
        "parameter": r"\$\d+" if database in _DOLLARS else r"@@?\w+" if database == "tsql" else r"(?!)",
        "word": rf"\#{{1,2}}{word}|{word}" if database == "tsql" else word,
        "number": rf"(?>{'0[xX][0-9a-fA-F]+|' if database else ''}(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)",
        "sign": rf"(?!--|/\*)(?:{'|'.join(re.escape(sign) for sign in signs)})",
    }
    return re.compile("|".join(f"(?P<{kind}>{group})" for kind, group in groups.items()), re.DOTALL)


def _list_signs(database: str) -> list[str]:
    if not database:
        return [*_SIGNS]
    more = (
        sign
        for sign, known in _MORE_SIGNS.items()
        if database in known or (known[0] == "*all" and f"-{database}" not in known)
    )
    return [*_SIGNS, *more]


def _check_token(tokens: list[Token], database: str) -> None:
    token, before = tokens[-1], tokens[-2] if len(tokens) > 1 else None
    text = token.text
    if token.kind == "text" and text[:3] in ("'''", '"""') and len(text) > 2 and database in _TRIPLE:
        raise Uncomputable("it has three quotes in a row, which databases read differently")
    if token.kind in ("word", "name") and not text.isascii():
        check_letters(text)
    if before is None or before.end != token.start:
        return
    if token.kind == "text" and before.kind == "text" and database in _TRIPLE:
        raise Uncomputable("it has a quote in a text, which databases read differently")
    if token.kind == "text" and before.word and before.word not in _TYPED:
        raise Uncomputable(f"it has {before.text} right before a quote, which databases read differently")
    if before.kind == "number" and token.kind in ("word", "number", "name"):
        raise Uncomputable(f"it has {before.text}{text}, which databases read differently")


def check_letters(name: str) -> None:
    """Raise `Uncomputable` for letters that a database may read as others, such as a long s or full-width letters."""
    changed = name.lower() + name.upper() + name.casefold()
    if unicodedata.normalize("NFKC", name) != name or sum(map(str.isascii, changed)) != 3 * sum(map(str.isascii, name)):
        raise Uncomputable(f"it has the name {name}, whose letters databases may read as others")


def check_budget(tokens: Sequence[Token]) -> None:
    """Raise `Uncomputable` for a text that takes the parser too long."""
    nested = types = 0
    indexes: dict[int, int] = {}
    before = ""
    for token in tokens:
        nested -= token.text in (")", "]") or token.word == "end"
        if token.text == "[":
            indexes[nested] = indexes.get(nested, 0) + 1 if before == "]" else 1
            if indexes[nested] > MOST_INDEXES:
                raise Uncomputable(f"it has more than {MOST_INDEXES} indexes in a row")
        nested += token.text in ("(", "[") or token.word == "case"
        if nested > MOST_NESTED:
            raise Uncomputable(f"it is nested too deeply; the limit is {MOST_NESTED}")
        types += token.text == "<" and before.lower() in _NESTED_TYPES
        before = token.text
    if types > MOST_NESTED:
        raise Uncomputable(f"it has more than {MOST_NESTED} nested types")
    if sum(token.word == "select" for token in tokens) > MOST_QUERIES:
        raise Uncomputable(f"it has more than {MOST_QUERIES} queries")


def check_spans(text: str, tokens: Sequence[Token], spans: Sequence[tuple[int, int]]) -> None:
    """Raise `Uncomputable` if the spans of the parser's tokens part texts, names or signs in another way."""
    starts, ends = {token.start for token in tokens}, {end for _, end in spans}
    signs = (
        (start, end) for start, end in spans if not text[start : start + 1].isalnum() and text[start:end] != _OUTER_JOIN
    )
    joined = (place for start, end in signs for place in range(start + 1, end))
    quoted = {place for token in tokens if token.kind in ("text", "name") for place in range(token.start, token.end)}
    if any(token.end not in ends for token in tokens if token.kind in ("text", "name")):
        raise Uncomputable("it has a quote that the parser reads differently")
    if any(place in starts and place not in quoted for place in joined):
        raise Uncomputable("it has signs in a row that databases part differently")
