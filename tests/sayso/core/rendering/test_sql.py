"""Writes that reach more rows than meant are flagged, whichever database reads them."""

import pytest

from sayso.core.rendering.renderers import render_call
from sayso.core.rendering.sql import check_statements


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM t", "no WHERE"),
        ("update t set a = 1", "no WHERE"),
        ("UPDATE t SET a = (SELECT b FROM c WHERE d = 1)", "no WHERE"),
        ("DELETE FROM t -- WHERE id = 1", "no WHERE"),
        ("DELETE FROM t # WHERE id = 1", "no WHERE"),
        ("DELETE FROM t /* WHERE id = 1 */", "no WHERE"),
        ("DELETE FROM t WHERE 1 = 1", "no WHERE"),
        ("DELETE FROM t WHERE TRUE", "no WHERE"),
        ("SELECT 1; DELETE FROM t", "no WHERE"),
        ("SELECT 1; SELECT 2", "Several statements"),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "no WHERE"),
        ("EXPLAIN ANALYZE DELETE FROM t", "no WHERE"),
        ("DELETE FROM t WHERE " + "(" * 12 + "a = 1" + ")" * 12, "no WHERE"),
        ("DELETE FROM t WHERE id = 1 OR admin", "OR at the top level"),
        ("delete from t where ((id = 1 or 2 = 2))", "OR at the top level"),
        ("DELETE FROM t WHERE n = 'a\\' OR 1=1 -- '", "OR at the top level"),
        ("DELETE FROM t WHERE id = 1 /*! OR 1=1 */", "OR at the top level"),
        ("/* /* */ SELECT 1 */", "comment within a comment"),
        ("DROP TABLE t", "DROP removes data"),
        ("truncate t", "TRUNCATE removes data"),
        ("SELECT 1 " + "x" * 20_000, "too long"),
        ("SELECT (" + "DELETE x " * 21 + ")", "too many"),
    ],
)
def test_check_statements_flags_wide_writes(statement: str, words: str) -> None:
    assert any(words in flag.sentence for flag in check_statements(statement))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM t WHERE a = 1 OR b = 2",
        "SELECT * FROM t FOR UPDATE",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t WHERE id = 1 AND (a = 1 OR b = 2)",
        "DELETE FROM t WHERE id IN (SELECT id FROM u WHERE a OR b) RETURNING a OR b",
        "UPDATE t SET a = 'x OR y' WHERE id = 1;",
        "INSERT INTO t VALUES ('DELETE FROM t')",
        "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2",
        'DELETE FROM "or" WHERE `or` = 1',
    ],
)
def test_check_statements_accepts_narrow_statements(statement: str) -> None:
    assert list(check_statements(statement)) == []


@pytest.mark.parametrize(
    ("statement", "headline"),
    [
        ("DELETE FROM public.orders WHERE id = 1", "DELETE public.orders"),
        ("SELECT * FROM a JOIN b ON a.x = b.x", "SELECT a, b"),
        ("SELECT 1 FROM a; DROP TABLE IF EXISTS b", "DROP b and 1 more"),
        ("WITH x AS (SELECT 1 FROM a) UPDATE b SET c = 1 WHERE d = 1", "UPDATE a, b"),
    ],
)
def test_headline_names_the_change_and_its_tables(statement: str, headline: str) -> None:
    assert render_call("run", {"query": statement}).headline == headline


def test_keywords_and_tables_are_marked() -> None:
    (row,) = render_call("run", {"sql": "DELETE FROM t WHERE id = 1"}).body
    assert [part.text for line in row.lines for part in line if part.kind == "table"] == ["t"]
    assert len(row.lines) == 3


@pytest.mark.parametrize("query", ["Theft", "update on the case", "select all", "with love"])
def test_search_words_are_not_sql(query: str) -> None:
    assert render_call("search", {"query": query}).renderer == "tree"
