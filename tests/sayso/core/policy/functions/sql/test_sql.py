"""What SQL statements do, and statements that try to hide it."""

import sqlite3
from contextlib import closing, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.sql.statements import DATABASES, MOST_CHARS, read_sql


@pytest.mark.parametrize(
    ("query", "database", "kinds", "tables"),
    [
        ("SELECT a FROM t", None, ["select"], ["t"]),
        ("select a from Public.Users u join orders o on true", None, ["select"], ["users", "public.users", "orders"]),
        ("select 1 union select a from t", None, ["select"], ["t"]),
        ("select * from (select * from t) x where a in (select b from u)", None, ["select"], ["t", "u"]),
        ("with x as (select * from t) select * from x", None, ["select"], ["x", "t"]),
        ("values (1), (2)", None, ["values"], []),
        ("select 'DROP TABLE t' -- DROP TABLE t", None, ["select"], []),
        ("select 1 /* ; drop table t */", None, ["select"], []),
        ("select $$a;b$$ from t", "postgres", ["select"], ["t"]),
        ("select `a` from `t`", "mysql", ["select"], ["t"]),
        ("select [a] from [t]", "tsql", ["select"], ["t"]),
    ],
)
def test_read_sql_of_reading_statements(query: str, database: str | None, kinds: list[str], tables: list[str]) -> None:
    found: Any = read_sql(query, database)
    assert (found["kinds"], sorted(found["tables"]), found["writes"]) == (kinds, sorted(tables), False)


@pytest.mark.parametrize(
    "query",
    [
        "insert into t values (1)",
        "update t set a = 1 where b = 2",
        "delete from t where a = 1",
        "drop table t",
        "create table t (a int)",
        "create table t as select 1",
        "alter table t add column a int",
        "truncate table t",
        "merge into t using s on t.a = s.a when matched then delete",
        "select * into u from t",
        "with x as (delete from t returning *) select * from x",
        "with x as (insert into t values (1) returning a) select * from x",
        "select 1; drop table t",
        "select 1;\n--\ndrop table t",
        "begin; delete from t; commit",
        "pragma writable_schema = 1",
        "use other",
        "SeLeCt 1 ; DeLeTe FrOm t",
    ],
)
def test_read_sql_of_writing_statements(query: str) -> None:
    assert read_sql(query)["writes"] is True


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("delete from t", False),
        ("update t set a = 1", False),
        ("delete from t where 1 = 1", False),
        ("delete from t where true", False),
        ("delete from t where (id = id)", False),
        ("delete from t where id = 3 or 1 = 1", False),
        ("delete from t where 'a' = 'a' and not false", False),
        ("delete from t where id = 3", True),
        ("delete from t where 1 = 1 and id = 3", True),
        ("update t set a = 1 where id in (1, 2)", True),
        ("delete from t where id = 3; delete from u", False),
        ("with x as (delete from t returning *) select * from x where a = 1", False),
        ("select * from t", True),
    ],
)
def test_has_where_needs_a_column(query: str, answer: bool) -> None:
    assert read_sql(query)["has_where"] is answer


def test_read_sql_names_functions() -> None:
    found = read_sql("select abs(1), COUNT(*), cast(a as int) from t where lower(b) = 'x' and c = 1")
    assert found["functions"] == ["abs", "count", "lower"]
    assert found["statements"] == 1
    assert read_sql("select now(), current_date", "postgres")["functions"] == ["now", "current_date"]


@pytest.mark.parametrize(
    "query",
    ["select pg_sleep(1)", "select total(a) from t", "select evil.lower('x')", "select * from other.listing(2)"],
)
def test_functions_beyond_the_list_cannot_be_computed(query: str) -> None:
    with pytest.raises(Uncomputable, match="not among the known functions of postgres"):
        read_sql(query, "postgres")


@pytest.mark.parametrize(
    ("query", "database"),
    [
        ("", None),
        (" ; -- nothing", None),
        ("select 1 /*! ; drop table t */", "mysql"),
        ("select 1 /*!50000 union select * from t */", "mysql"),
        ("select 1 /*M! ; drop table t */", "mysql"),
        ("select 1 --1; drop table t", "mysql"),
        ("select 1 --1; drop table t", None),
        ("select 1 # ; drop table t\n", None),
        ("select 'a\\'; drop table t; -- '", None),
        ("select 'a\\' ; drop table t; -- '", "mysql"),
        ("select $$a$$; drop table t", None),
        ("select q'!a'!'; drop table t --'", None),
        ("select `a;b`", None),
        ("/* /* */ drop table t; -- */", None),
        ("/* /* */ drop table t; -- */", "postgres"),
        ("vacuum", None),
        ("call do_it()", None),
        ("grant all on t to u", None),
        ("copy t from 'file'", None),
        ("explain analyze delete from t", "postgres"),
        ("lock table t", "postgres"),
        ("select from where", None),
        ("select 'open", None),
        ("drop\u00a0table t", None),
        ("select 1;\u2028drop table t", None),
        ("select \x00 1", None),
        ("(" * 5_000, None),
        ("select " + "(" * 3_000 + "1" + ")" * 3_000, None),
        ("select " + "a(" * 2_000 + ")" * 2_000, None),
        ("x" * (MOST_CHARS + 1), None),
        ("select 1", "postgress"),
        ("select 1", 5),
        (5, None),
        (["select 1"], None),
        (None, None),
    ],
)
def test_read_sql_refuses_what_databases_may_read_otherwise(query: Any, database: Any) -> None:
    with pytest.raises(Uncomputable):
        read_sql(query, database)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("select a" + "[1]" * 200, "more than 4 indexes in a row"),
        ("select a" + "[b[1]]" * 5, "more than 4 indexes in a row"),
        ("select " + "1," * 1_000 + "1", "more than 1000 tokens"),
        ("select " + "(" * 17 + "1" + ")" * 17, "nested too deeply"),
        ("select " + "case when a then " * 17 + "1" + " end" * 17, "nested too deeply"),
        ("select " + "array[" * 17 + "1" + "]" * 17, "nested too deeply"),
        ("select * from " + "(select * from " * 17 + "t" + ") x" * 17, "nested too deeply"),
        ("select cast(a as " + "array<" * 17 + "int" + ">" * 17 + ")", "more than 16 nested types"),
        ("select 1" + " union select 1" * 60, "more than 60 queries"),
        ("select a" + ".b()" * 200, "not among the known functions"),
        ("select " + "int(" * 15 + "1" + ")" * 15, "too many steps"),
        ("select " + "array[" * 15 + "1" + "]" * 15, "too many steps"),
    ],
)
def test_slow_texts_are_refused(query: str, problem: str) -> None:
    with pytest.raises(Uncomputable, match=problem):
        read_sql(query, "postgres")


@pytest.mark.parametrize("database", DATABASES)
def test_every_database_reads_plain_statements(database: str) -> None:
    assert read_sql("SELECT a FROM t WHERE b = 1", database)["tables"] == ["t"]
    assert read_sql("DELETE FROM t WHERE b = 1", database)["writes"] is True


_WORDS = [
    "select",
    "from",
    "t",
    "(",
    ")",
    ",",
    ";",
    "'",
    '"',
    "--",
    " ",
    "\n",
    "/*",
    "*/",
    "delete",
    "with x as",
    "where",
]
_WORDS += [
    "1",
    "=",
    "union",
    "case",
    "when",
    "*",
    "and",
    "not",
    "::",
    ".",
    "drop table",
    "interval",
    "::int",
    "{",
    "[",
    "`",
]


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(st.sampled_from(_WORDS), max_size=40), database=st.sampled_from([None, *DATABASES]))
def test_read_sql_raises_nothing_else(pieces: list[str], database: str | None) -> None:
    try:
        read_sql(" ".join(pieces), database)
    except Uncomputable:
        return


_STATEMENTS = [
    *("select a from t", "select * from t where a in (select b from u)", "delete from t where a = 1", "values (1)"),
    *("with x as (select a from s) select * from x", "update u set a = 1", "insert into t select * from u", "select 1"),
    *("create table z (a)", "drop table s", "replace into u values (1, 2)", "select * from t natural join u"),
]
_BETWEEN = [
    *(";", " union ", " /* x */ ", " -- x\n", " --", "/*", "*/", "'", '"', " (", ") ", "\n", "[t]", "`t`", "main.t"),
    *(", u ", " where a = 1", " returning *", "explain "),
]
_READS = (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


@settings(max_examples=400, deadline=None)
@given(
    pieces=st.lists(st.sampled_from([*_STATEMENTS, *_BETWEEN, *_BETWEEN]), min_size=1, max_size=5),
    database=st.sampled_from([None, "sqlite"]),
)
def test_sqlite_reads_and_writes_nothing_else(pieces: list[str], database: str | None) -> None:
    """What the authorizer of a real database sees is among the tables, and every change is a change."""
    text = "".join(pieces)
    try:
        found: Any = read_sql(text, database)
    except Uncomputable:
        return
    tables, changes = _run(text)
    assert tables <= {*found["tables"]}, text
    assert found["writes"] or not changes, text


def _run(text: str) -> tuple[set[str], list[int]]:
    """Return the tables that SQLite reads for a text, and the changes that it makes."""
    tables: set[str] = set()
    changes: list[int] = []

    def note(action: int, first: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and first in ("t", "u", "s"):
            tables.add(first)
        elif action not in (
            sqlite3.SQLITE_READ,
            sqlite3.SQLITE_SELECT,
            sqlite3.SQLITE_FUNCTION,
            sqlite3.SQLITE_RECURSIVE,
        ):
            changes.append(action)
        return sqlite3.SQLITE_OK

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript("create table t (a, b); create table u (a, b); create table s (a, b);")
        database.set_authorizer(note)
        with suppress(sqlite3.Error):
            database.executescript(text)
    return tables, changes
