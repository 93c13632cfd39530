"""What SQL statements do: their kinds, tables and functions, and whether they change anything.

The parser is sqlglot, which takes what it does not know as a name. So only known words, functions and nodes of the
database are read, each word has its place in the tree, and all else is refused.
"""

import logging
from functools import lru_cache
from importlib import import_module
from typing import Any

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.words.databases.checking import check_words, read_tokens
from sayso.policy.words.databases.lexing import check_budget, check_spans, list_tokens
from sayso.policy.words.databases.tree import Tree, is_a
from sayso.policy.words.faults import Uncomputable, read_text

MOST_CHARS = 8_000
MOST_STEPS_PER_TOKEN = 6
"""The limit of the parser's steps for each token, beside a fixed number; a plain statement takes two or three."""
FEW_STEPS = 400

DATABASES = (
    *("athena", "bigquery", "clickhouse", "databricks", "duckdb", "mysql", "oracle", "postgres"),
    *("presto", "redshift", "snowflake", "spark", "sqlite", "trino", "tsql"),
)
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
    tokens = list_tokens(text, name)
    check_budget(tokens)
    words = read_tokens(tokens, name)
    dialect, parser = _make_parser(name)
    try:
        parsed_tokens = dialect.tokenize(text)
        check_spans(text, tokens, [(token.start, token.end + 1) for token in parsed_tokens])
        limit = FEW_STEPS + MOST_STEPS_PER_TOKEN * len(tokens)
        parsed = parser(limit, dialect=dialect).parse(parsed_tokens, text)
    except (import_module("sqlglot.errors").SqlglotError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise Uncomputable("it is not SQL that the parser knows") from error
    except RecursionError as error:
        raise Uncomputable("it is nested too deeply") from error
    statements = [statement for statement in parsed if statement is not None and not is_a(statement, "Semicolon")]
    if not statements:
        raise Uncomputable("it has no statement")
    tree = Tree(statements, name)
    check_words(words, tree, name)
    return {
        "statements": len(statements),
        "kinds": [*dict.fromkeys(_name_kind(statement) for statement in statements)],
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


def _name_kind(statement: Any) -> str:
    return "select" if is_a(statement, "SetOperation", "Subquery") else str(statement.key)
