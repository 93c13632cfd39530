"""What SQL statements do: their kinds, tables and functions, and whether they change anything.

The parser is sqlglot. Text that databases read differently is refused, and so is what the parser does not know.
"""

import logging
import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.words.faults import Uncomputable, read_text

MOST_CHARS = 8_000
MOST_STEPS = 50_000
"""The limit of the parser's steps over tokens; a plain statement takes a few for each token."""

DATABASES = (
    *("athena", "bigquery", "clickhouse", "databricks", "duckdb", "mysql", "oracle", "postgres"),
    *("presto", "redshift", "snowflake", "spark", "sqlite", "trino", "tsql"),
)
_READS = ("Select", "SetOperation", "Subquery", "Values", "Describe")
_CHANGES = ("DML", "DDL", "Into", "Drop", "Alter", "TruncateTable")
_OPERATORS = ("Connector", "Cast", "Case", "If")
_REFUSED = {
    "a backslash, which escapes in some databases": re.compile(r"\\"),
    "a comment that some databases run": re.compile(r"/\*M?!"),
    "a comment in a comment": re.compile(r"/\*(?:(?!\*/).)*/\*", re.DOTALL),
    "-- without a blank, which is no comment in MySQL": re.compile(r"--\S"),
}
_UNCLEAR = re.compile(r"""[#$`\[]|\b[nN]?[qQ]'""")
"""Quotes and comments of some databases only."""


def check_database(database: JsonValue) -> str:
    """Return the name of a database; raises `Uncomputable` for an unknown one."""
    if not isinstance(database, str) or database not in DATABASES:
        raise Uncomputable(f"there is no database {database!r}; use {', '.join(DATABASES)}")
    return database


def read_sql(value: JsonValue, database: JsonValue = None) -> JsonObject:
    """Return what the statements of a text do. Without a database, only text that all databases read alike is read."""
    text = read_text(value, MOST_CHARS)
    for what, pattern in _REFUSED.items():
        if pattern.search(text):
            raise Uncomputable(f"it has {what}")
    if database is None and (found := _UNCLEAR.search(text)):
        raise Uncomputable(
            f'databases read {found[0]} differently; name the database, as in sql(args.query, "postgres")'
        )
    statements = _parse(text, "" if database is None else check_database(database))
    if not statements:
        raise Uncomputable("it has no statement")
    nodes = [node for one in statements for node in one.walk()]
    return {
        "statements": len(statements),
        "kinds": [*dict.fromkeys(_name_kind(one) for one in statements)],
        "tables": [*dict.fromkeys(name for node in nodes if _is(node, "Table") for name in _list_names(node))],
        "functions": [*dict.fromkeys(name for node in nodes if _is(node, "Func") for name in _list_functions(node))],
        "writes": not all(_is(one, *_READS) for one in statements) or any(_is(node, *_CHANGES) for node in nodes),
        "has_where": all(_is_limited(node) for node in nodes if _is(node, "Update", "Delete")),
    }


def _parse(text: str, name: str) -> list[Any]:
    dialect, parser = _make_parser(name)
    try:
        parsed = parser(dialect=dialect).parse(dialect.tokenize(text), text)
    except import_module("sqlglot.errors").SqlglotError as error:
        raise Uncomputable("it is not SQL that the parser knows") from error
    except RecursionError as error:
        raise Uncomputable("it is nested too deeply") from error
    statements = [one for one in parsed if one is not None and not _is(one, "Semicolon")]
    if any(_is(one, "Command") for one in statements):
        raise Uncomputable("it has a statement that the parser does not know")
    return statements


@lru_cache(maxsize=len(DATABASES) + 1)
def _make_parser(name: str) -> tuple[Any, Any]:
    """Return a dialect, and its parser with a limit of steps and without the guess for unknown statements."""
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # its warnings quote the agent's text
    dialect = import_module("sqlglot").Dialect.get_or_raise(name)
    base: Any = dialect.parser_class

    class Bounded(base):  # type: ignore[misc]
        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Uncomputable("it takes too many steps to parse")
            super()._advance(times)

        def _warn_unsupported(self) -> None:
            raise Uncomputable("it has a statement that the parser does not know")

    return dialect, Bounded


@lru_cache(maxsize=32)
def _classes(names: tuple[str, ...]) -> tuple[type, ...]:
    expressions = import_module("sqlglot.expressions")
    return tuple(getattr(expressions, name) for name in names)


def _is(node: Any, *names: str) -> bool:
    return isinstance(node, _classes(names)) and not (names == ("Func",) and _is(node, *_OPERATORS))


def _name_kind(statement: Any) -> str:
    return "select" if _is(statement, "SetOperation", "Subquery") else str(statement.key)


def _list_names(table: Any) -> list[str]:
    """Return a table's name, and its qualified name if it has one."""
    parts = [str(part.name).lower() for part in table.parts if part.name]
    return [".".join(parts[-1:]), ".".join(parts)] if parts else []


def _list_functions(node: Any) -> list[str]:
    """Return a function's name, and its qualified name if it has one: a schema may hide a function of its own."""
    name = str(node.name if _is(node, "Anonymous") else node.sql_name()).lower()
    owner = node.parent
    before: list[Any] = []
    if _is(owner, "Dot") and owner.expression is node:
        before = [part for part in owner.this.dfs() if _is(part, "Identifier")]
    elif _is(owner, "Table"):
        before = owner.parts[:-1]
    return [name, ".".join([*(str(part.name).lower() for part in before), name])]


def _is_limited(statement: Any) -> bool:
    where = statement.args.get("where")
    return where is not None and _names_column(where.this)


def _names_column(condition: Any) -> bool:
    """Whether a condition leaves out rows by a column, unlike `1 = 1` or `id = id`."""
    if _is(condition, "Paren"):
        return _names_column(condition.this)
    if _is(condition, "Or"):
        return _names_column(condition.left) and _names_column(condition.right)
    if _is(condition, "And"):
        return _names_column(condition.left) or _names_column(condition.right)
    if _is(condition, "Binary") and condition.left == condition.right:
        return False
    return condition.find(*_classes(("Column",))) is not None
