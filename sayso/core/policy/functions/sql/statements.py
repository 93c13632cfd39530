"""What SQL statements do: their kinds, tables and functions, and whether they change anything.

The parser is sqlglot, which takes what it does not know as a name. So only known words, functions and nodes of the
database are read, each word has its place in the tree, and all else is refused.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.functions import Uncomputable, read_text
from sayso.core.policy.functions.sql import lexing
from sayso.core.policy.functions.sql.functions import BARE, FUNCTIONS
from sayso.core.policy.functions.sql.tree import Tree, is_a

_BEFORE_TEXT = lexing.parse_list(
    """
    and as between by case date datetime else escape from glob ilike in interval is json like not on or regexp returning
    rlike select separator similar then time timestamp timestamptz to when where zone match set values limit return
    having distinct all div mod xor collate top offset using leading trailing both numeric decimal bignumeric
    """
)
_BEFORE_TABLE = frozenset(("into", "join", "table", "update", "using"))
_PLACES = {
    "select": ("Select",),
    "insert": ("Insert",),
    "update": ("Update",),
    "delete": ("Delete",),
    "merge": ("Merge",),
    "create": ("Create",),
    "drop": ("Drop",),
    "alter": ("Alter", "AlterColumn"),
    "truncate": ("TruncateTable",),
}
"""The nodes of words that begin statements: each word of a text has one."""
MOST_DOTTED = 8  # the limit of qualified names before parentheses in changes, such as `insert into shop.orders (id)`
_NONE, _END = lexing.Token("", "", 0, 0), lexing.Token("sign", ";", 0, 0)


@dataclass
class Words:
    """What the words of a text are: functions that are called, names, and names before parentheses."""

    functions: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    shaped: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    statements: int = 0


def read_tokens(tokens: Sequence[lexing.Token], database: str) -> Words:
    """Return what each word is; raises `Uncomputable` for calls and starts of statements that are not known."""
    starts = [token for before, token in pairwise([_END, *tokens]) if before.text == ";" and token.text != ";"]
    for start in starts:
        if start.text != "(" and start.word not in lexing.STARTS:
            raise Uncomputable(f"it has a statement that begins with {start.text}, which the reader does not know")
    changes = any(start.word in lexing.STARTS - lexing.QUERY_STARTS for start in starts)
    changes = changes or any(token.word in lexing.CHANGES for token in tokens)
    reader = _Reader(database, changes)
    reader.words.statements = len(starts)
    padded = [_NONE, *tokens, _NONE, _NONE, _NONE]
    for place, token in enumerate(tokens):
        if token.kind in ("word", "name"):
            reader.add(token, padded[place], padded[place + 2 : place + 5])
        elif token.kind in ("text", "parameter"):
            reader.check_value(padded[place])
    return reader.words


class _Reader:
    def __init__(self, database: str, changes: bool) -> None:
        self.words = Words()
        self._database, self._changes = database, changes
        self._dotted = 0
        self._known = lexing.list_words(database, changes)
        self._shapes = lexing.list_before_parentheses(database, changes)
        self._functions = FUNCTIONS[database]

    def add(self, token: lexing.Token, before: lexing.Token, after: Sequence[lexing.Token]) -> None:
        """Sort a word or a name in quotes, by the tokens around it."""
        name = token.word.lstrip("#") or token.text[1:-1].lower()
        is_outer_join = self._database == "oracle" and [sign.text for sign in after] == ["(", "+", ")"]
        is_call = after[0].text == "(" and not is_outer_join
        if token.word and not (is_call and name in self._functions):
            self.words.counts[name] += 1
        if before.text in ("", ";") and token.word in lexing.STARTS:
            return
        if before.text == "." or after[0].text == "." or not token.word:
            if is_call and before.text == ".":
                self._dotted += 1
                if not self._changes or self._dotted > MOST_DOTTED:
                    raise refuse_call(name, self._database)
            if is_call:
                self._add_shape(name, after[1])
            self.words.names.update(name.split(".") if self._database == "bigquery" else [name])
        elif is_call:
            self._add_call(name, before, after[1])
        elif name in BARE and name in self._functions:
            self.words.functions.append(name)
        elif name not in self._known and name not in lexing.TYPES:
            self.words.names.add(name)

    def check_value(self, before: lexing.Token) -> None:
        """Refuse a text or parameter after a name: it may be an alias or the value of a type."""
        alone = before.word in self.words.names and before.word not in _BEFORE_TEXT
        if alone or before.kind == "name" or before.word in _BEFORE_TABLE:
            raise Uncomputable(f"it has {before.text} before a value, which databases read differently")

    def _add_call(self, name: str, before: lexing.Token, argument: lexing.Token) -> None:
        if (name == "replace" and before.text in ("*", ")")) or (name == "filter" and argument.word == "where"):
            return
        if name in self._functions:
            self.words.functions.append(name)
        elif name not in self._shapes and name not in lexing.TYPES:
            self._add_shape(name, argument)

    def _add_shape(self, name: str, argument: lexing.Token) -> None:
        """Count a name with columns in parentheses, which the tree must have as one."""
        if argument.kind not in ("word", "name"):
            raise refuse_call(name, self._database)
        self.words.shaped[name] += 1


def refuse_call(name: str, database: str) -> Uncomputable:
    """Return the refusal of a function that is not known."""
    return Uncomputable(f"it calls {name}, which is not among the known functions of {database or 'all databases'}")


def check_words(words: Words, tree: Tree, database: str) -> None:
    """Raise `Uncomputable` for words whose place is not in the tree."""
    if words.statements != tree.statements:
        raise Uncomputable("it has statements that databases part differently")
    shapes = tree.shapes
    unknown = [name for name, count in words.shaped.items() if count > shapes[name]]
    if unknown := sorted({*unknown, *tree.calls.difference(words.functions)}):
        raise refuse_call(unknown[0], database)
    if unknown := sorted(words.names - tree.names):
        raise Uncomputable(f"it has the word {unknown[0]}, which the reader does not know")
    if reserved := sorted(lexing.list_reserved(database) & tree.bare_names):
        raise Uncomputable(f"it has {reserved[0]} as a name without quotes, which databases read differently")
    parts = {  # words in a part of a statement, such as `do update`
        "update": sum(bool(node.expressions) for node in tree.find("OnConflict")),
        "delete": sum(is_a(node.args["then"], "Var") for node in tree.find("When")),
    }
    for word, classes in _PLACES.items():
        if words.counts[word] != tree.count(*classes) + parts.get(word, 0):
            raise Uncomputable(f"it has {word} where the reader expects none")
    if words.counts["into"] > tree.count("Into", "Insert", "Merge"):
        raise Uncomputable("it has into where the reader expects none")


MOST_CHARS = 8_000
MOST_STEPS_PER_TOKEN = 6
"""The limit of the parser's steps for each token, beside a fixed number; a plain statement takes two or three."""
FEW_STEPS = 400

DATABASES = tuple(filter(None, FUNCTIONS))
_READS = ("Select", "SetOperation", "Subquery", "Values", "Describe")
_CHANGES = ("DML", "DDL", "Into", "Drop", "Alter", "TruncateTable")


def check_database(database: JsonValue) -> str:
    """Return the name of a database; raises `Uncomputable` for an unknown one."""
    if not isinstance(database, str) or database not in DATABASES:
        raise Uncomputable(f"there is no database {database!r}; use {', '.join(DATABASES)}")
    return database


def read_sql(value: JsonValue, database: JsonValue = None) -> JsonObject:
    """Return what the statements of a text do. Without a database, only text that all databases read alike is read."""
    text = read_text(value, MOST_CHARS)
    name = "" if database is None else check_database(database)
    if "\\" in text:
        raise Uncomputable("it has a backslash, which escapes in some databases")
    tokens = lexing.list_tokens(text, name)
    lexing.check_budget(tokens)
    words = read_tokens(tokens, name)
    dialect, parser = _make_parser(name)
    try:
        parsed_tokens = dialect.tokenize(text)
        lexing.check_spans(text, tokens, [(token.start, token.end + 1) for token in parsed_tokens])
        limit = FEW_STEPS + MOST_STEPS_PER_TOKEN * len(tokens)
        parsed = parser(limit, dialect=dialect).parse(parsed_tokens, text)
    except (import_module("sqlglot.errors").SqlglotError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise Uncomputable("it is not SQL that the parser knows") from error
    except RecursionError as error:
        raise Uncomputable("it is nested too deeply") from error
    statements = [statement for statement in parsed if statement is not None and not is_a(statement, "Semicolon")]
    kinds = ("select" if is_a(each, "SetOperation", "Subquery") else str(each.key) for each in statements)
    if not statements:
        raise Uncomputable("it has no statement")
    tree = Tree(statements, name)
    check_words(words, tree, name)
    return {
        "statements": len(statements),
        "kinds": [*dict.fromkeys(kinds)],
        "tables": [*tree.tables],
        "functions": [*dict.fromkeys(words.functions)],
        "writes": not all(is_a(statement, *_READS) for statement in statements) or tree.has(*_CHANGES),
        "has_where": tree.is_limited,
    }


@lru_cache(maxsize=len(DATABASES) + 1)
def _make_parser(name: str) -> tuple[Any, Any]:
    """Return a dialect, and its parser with a limit of steps and without the guess for unknown statements."""
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # its warnings quote the agent's text
    dialect = import_module("sqlglot").Dialect.get_or_raise(name)
    base: Any = dialect.parser_class

    class Bounded(base):  # type: ignore[misc]
        def __init__(self, limit: int, **given: Any) -> None:
            super().__init__(**given)
            self._steps_left = limit

        def _advance(self, times: int = 1) -> None:
            self._steps_left -= 1
            if self._steps_left < 0:
                raise Uncomputable("it takes too many steps to parse")
            super()._advance(times)

        def _warn_unsupported(self) -> None:
            raise Uncomputable("it has a statement that the parser does not know")

    return dialect, Bounded
