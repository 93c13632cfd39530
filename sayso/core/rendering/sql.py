"""SQL statements: keywords and tables marked, and writes flagged that may reach more rows than meant.

Databases differ in comments and in escapes within texts. Each statement is read in both ways, and what either reading
finds is flagged.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sayso.core.rendering.views import (
    MAX_PARSED_CHARS,
    SEVERE,
    Call,
    Flag,
    Mark,
    Place,
    Sketch,
    normalize,
    read_text,
    shorten,
)
from sayso.core.text.language import _
from sayso.core.text.summaries import Leaf

_NAMES = ("sql", "query", "statement", "sqlquery", "sqlstatement", "queries", "statements")
_WHERE = ("database", "db", "dbname", "connection", "host", "server", "environment", "env")
_DATABASES = frozenset(("sql", "db", "database", "postgres", "postgresql", "mysql", "sqlite", "warehouse"))
_READS = frozenset(("SELECT", "WITH", "EXPLAIN", "BEGIN"))
_WRITES = frozenset(("INSERT", "REPLACE", "UPDATE", "DELETE", "MERGE"))
_CHANGES = frozenset(("CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE"))
_STARTS = _READS | _WRITES | _CHANGES
_EVIDENCE = {
    "SELECT": frozenset(("FROM",)),
    "WITH": frozenset(("AS",)),
    "UPDATE": frozenset(("SET",)),
    "DELETE": frozenset(("FROM", "WHERE")),
}
"""Words without which a search text that begins with the verb is no SQL."""

_OBJECTS = frozenset(("INTO", "TABLE", "INDEX", "VIEW", "DATABASE", "SCHEMA", "ROLE", "USER", "ON", *_WRITES))
_MOST_WRITES = 20
_REST = r"""
    |(?P<dollar>\$(?P<tag>[^\W\d]?\w*)\$.*?(?:\$(?P=tag)\$|\Z))
    |(?P<name>`[^`]*(?:`|\Z)|\[[^\[\]\s]{1,128}\])
    |(?P<word>[^\W\d]\w*)
    |(?P<number>[0-9]+(?:\.[0-9]+)?)
    |(?P<blank>\s+)
    |(?P<sign>.)"""
_STANDARD = (
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*+(?:'|\Z))|(?P<quoted>"(?:[^"]|"")*+(?:"|\Z))"""
)
_MYSQL = r"""(?P<comment>--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*(?!!).*?(?:\*/|\Z))
    |(?P<text>'(?:[^'\\]|\\.|'')*+(?:'|\Z))|(?P<quoted>"(?:[^"\\]|\\.|"")*+(?:"|\Z))"""
_READINGS = tuple(re.compile(start + _REST, re.VERBOSE | re.DOTALL) for start in (_STANDARD, _MYSQL))
_CLAUSES = frozenset(("FROM", "WHERE", "SET", "VALUES", "HAVING", "LIMIT", "RETURNING", "UNION"))
_JOINING = frozenset(("INTO", "JOIN", "ON", "USING", "AS", "ORDER", "GROUP", "BY", "TABLE", "TO", "DISTINCT"))
_LOGIC = frozenset(("AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "EXISTS", "CASE", "WHEN", "ELSE", "END"))
_KEYWORDS = _STARTS | _CLAUSES | _JOINING | _LOGIC
_BEFORE_TABLE = frozenset(("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "TRUNCATE"))
_BETWEEN = frozenset(("ONLY", "IF", "EXISTS", "NOT", "TABLE", "LATERAL"))
_NO_WRITE_AFTER = frozenset(("FOR", "ON", "KEY", "DO", "OF", "BEFORE", "AFTER", "OR", "GRANT", "REVOKE", "NO", "THEN"))
_AFTER_WHERE = frozenset(("RETURNING", "ORDER", "LIMIT", "OPTION", "UNION"))
_NOT_CODE = ("blank", "comment")


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    depth: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def render(call: Call) -> Sketch | None:
    """Return statements; a text under `query` must begin like one."""
    leaves = [leaf for leaf in call.find_texts(*_NAMES) if call.tool_words & _DATABASES or _is_sql(leaf)]
    if not leaves:
        return None
    flags: dict[Flag, None] = {}
    body, headlines = [], []
    for leaf in leaves:
        text = read_text(leaf)
        tokens = _read(text, _READINGS[0])
        flags |= dict.fromkeys(check_statements(text))
        body.append(Place(leaf.path, "code", list(_mark(tokens)), _break(text, tokens)))
        headlines += [_name(statement) for statement in _part(tokens)]
    headlines.sort(key=lambda headline: headline.startswith("SELECT"))  # what changes data comes first
    headline = (headlines or [call.title])[0]
    if headlines[1:]:
        headline = _("%(first)s and %(count)s more", first=headline, count=len(headlines) - 1)
    notable = [Place(leaf.path) for leaf in call.find_texts(*_WHERE)]
    return Sketch(headline, notable, body, tuple(flags))


def check_statements(text: str) -> Iterator[Flag]:
    """Yield the flags of a text of SQL."""
    if len(text) > MAX_PARSED_CHARS:
        yield Flag(_("The SQL is too long to be checked. Read it in full."), SEVERE, _("not checked"))
        return
    for reading in _READINGS:
        tokens = _read(text, reading)
        statements = _part(tokens)
        if len(statements) > 1:
            yield Flag(_("Several statements in one text."))
        if any(token.kind == "comment" and "/*" in token.text[2:] for token in tokens):
            sentence = _("A comment within a comment: databases read it differently.")
            yield Flag(sentence, SEVERE, _("nested comment"))
        for statement in statements:
            yield from _check(statement)


def _read(text: str, reading: re.Pattern[str]) -> list[_Token]:
    """Return the tokens; `depth` counts open parentheses."""
    tokens, depth = [], 0
    for match in reading.finditer(text[:MAX_PARSED_CHARS]):
        sign = match.group()
        depth -= sign == ")"
        kind = "dollar" if match["dollar"] is not None else match.lastgroup or "sign"
        tokens.append(_Token(kind, sign, match.start(), depth))
        depth += sign == "("
    return tokens


def _part(tokens: Sequence[_Token]) -> list[list[_Token]]:
    statements: list[list[_Token]] = [[]]
    for token in tokens:
        if token.text == ";":
            statements.append([])
        elif token.kind not in _NOT_CODE:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _is_sql(leaf: Leaf) -> bool:
    if normalize(leaf.path).startswith("sql"):
        return True
    for reading in _READINGS:
        words = [token.word for token in _read(read_text(leaf), reading) if token.word]
        if words and words[0] in _STARTS and not _EVIDENCE.get(words[0], _OBJECTS).isdisjoint(words[1:]):
            return True
    return False


def _check(statement: list[_Token]) -> Iterator[Flag]:
    words = [token.word for token in statement]
    if words[0] in ("DROP", "TRUNCATE"):
        yield Flag(_("%(verb)s removes data as a whole.", verb=words[0]), SEVERE, words[0])
    known = [place for place, word in enumerate(words) if word in ("UPDATE", "DELETE")]
    writes = [place for place in known if not place or words[place - 1] not in _NO_WRITE_AFTER]
    if len(writes) > _MOST_WRITES:
        sentence = _("One statement has %(count)s writes, too many to be checked. Read it in full.", count=len(writes))
        yield Flag(sentence, SEVERE, _("not checked"))
    for place in writes[:_MOST_WRITES]:
        yield from _check_write(words[place], statement[place:])


def _check_write(verb: str, statement: list[_Token]) -> Iterator[Flag]:
    depth = statement[0].depth
    end = next((place for place, token in enumerate(statement) if token.depth < depth), len(statement))
    level = [place for place, token in enumerate(statement[:end]) if token.depth == depth]
    begin = next((place for place in level if statement[place].word == "WHERE"), 0)
    condition = statement[begin + 1 : end] if begin else []
    ends = [place for place, part in enumerate(condition) if part.depth == depth and part.word in _AFTER_WHERE]
    condition = _unwrap(condition[: ends[0]] if ends else condition)
    texts = [token.text.upper() for token in condition]
    equal = len(texts) == 3 and texts[1] in ("=", "LIKE") and texts[0] == texts[2]
    outer = [part for part in condition if part.depth == condition[0].depth]
    if equal or texts in ([], ["TRUE"], ["1"]):
        yield Flag(_("%(verb)s has no WHERE that limits it: it changes every row.", verb=verb), SEVERE, _("no WHERE"))
    elif any(part.word in ("OR", "XOR") or part.text == "|" for part in outer):
        sentence = _("OR at the top level of the WHERE of %(verb)s: it may change more rows than meant.", verb=verb)
        yield Flag(sentence, SEVERE, _("OR in WHERE"))


def _unwrap(condition: list[_Token]) -> list[_Token]:
    for _depth in range(10):
        wrapped = len(condition) > 1 and condition[0].text == "(" and condition[-1].text == ")"
        if not wrapped or any(token.depth == condition[0].depth for token in condition[1:-1]):
            return condition
        condition = condition[1:-1]
    return []  # too deep to be checked


def _find_tables(statement: Sequence[_Token]) -> Iterator[list[_Token]]:
    for place, token in enumerate(statement):
        if token.word not in _BEFORE_TABLE:
            continue
        rest = [part for part in statement[place + 1 : place + 12] if part.kind not in _NOT_CODE]
        while rest and rest[0].word in _BETWEEN:
            rest.pop(0)
        if rest and rest[0].kind in ("word", "name", "quoted") and rest[0].word not in _KEYWORDS:
            count = 3 if len(rest) > 2 and rest[1].text == "." else 1
            yield rest[:count]


def _name(statement: list[_Token]) -> str:
    tables = dict.fromkeys("".join(token.text for token in table) for table in _find_tables(statement))
    words = [token.word for token in statement]
    verb = words[0]
    if verb == "WITH":
        verb = next((word for word in ("DELETE", "UPDATE", "INSERT", "MERGE", "SELECT") if word in words), verb)
    return f"{verb or shorten(statement[0].text)} {shorten(', '.join(tables))}".strip()


def _mark(tokens: Sequence[_Token]) -> Iterator[Mark]:
    tables = {token.start for table in _find_tables(tokens) for token in table}
    for token in tokens:
        kind = "table" if token.start in tables else "keyword" if token.word in _KEYWORDS else ""
        if kind:
            yield Mark(token.start, token.start + len(token.text), kind)


def _break(text: str, tokens: Sequence[_Token]) -> list[int]:
    """Return where lines begin in a text that has no lines of its own."""
    if "\n" in text:
        return []
    clauses = [token.start for token in tokens if token.depth == 0 and token.word in _CLAUSES]
    return [*clauses, *(statement[0].start for statement in _part(tokens))]
