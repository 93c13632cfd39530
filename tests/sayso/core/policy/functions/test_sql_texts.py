"""A corpus of SQL for each database: what ordinary texts do, and texts that hide what they do.

The answers are stated by hand from the manuals of the databases; `databases` with null is a text without a database.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.sql.lexing import list_tokens
from sayso.core.policy.functions.sql.statements import DATABASES, read_sql

_LINES = (Path(__file__).parent / "sql_texts.jsonl").read_text().splitlines()
_TEXTS = [(database, line) for line in map(json.loads, _LINES) for database in line["databases"]]
_ANYWHERE = [None, *DATABASES]


_INSERTED = [
    *("delete from items", "update items set a = 1", "drop table items", "truncate table items", "exec purge"),
    *(
        "shutdown",
        "checkpoint",
        "waitfor delay '1'",
        "purge(1)",
        "evil.f(1)",
        ", purge(1)",
        "; purge",
        "operator(evil.+)",
    ),
    *("into outfile 'x'", "for update", "using 'x'", "settings a = 1", "table('x')", "lateral purge(1)", "::evil"),
    *(
        "union select purge(1)",
        "limit purge(1)",
        "qualify purge(1)",
        "filter (where purge(1))",
        "as x delete from items",
    ),
]
"""What changes data, calls a function that no database has, or steers a query."""
_NAMES_ELSEWHERE = ("shutdown", "checkpoint")
_QUERIES = [(database, line["text"]) for database, line in _TEXTS if line.get("writes") is False]


def _select(database: str | None, refused: bool) -> list[dict[str, Any]]:
    return [line for one, line in _TEXTS if one == database and ("refused" in line) is refused]


def _read(text: str, database: str | None) -> Any:
    try:
        return read_sql(text, database)
    except Uncomputable as error:
        return error.message


@pytest.mark.parametrize("database", _ANYWHERE)
def test_ordinary_texts_are_read(database: str | None) -> None:
    wrong = []
    for line in _select(database, refused=False):
        right = {name: line[name] for name in ("statements", "kinds", "tables", "functions", "writes", "has_where")}
        found = _read(line["text"], database)
        if isinstance(found, dict):
            found |= {name: sorted(found[name]) for name in ("tables", "functions")}
        if found != right:
            wrong.append((line["text"], found, right))
    assert wrong == []


@pytest.mark.parametrize("database", _ANYWHERE)
def test_hiding_texts_cannot_be_computed(database: str | None) -> None:
    found = {line["text"]: _read(line["text"], database) for line in _select(database, refused=True)}
    assert {text: answer for text, answer in found.items() if not isinstance(answer, str)} == {}


def test_corpus_is_large_for_each_database() -> None:
    assert len(_TEXTS) >= 1_000
    assert len({line["text"] for _, line in _TEXTS}) >= 1_000
    for database in _ANYWHERE:
        assert len(_select(database, refused=False)) >= 40
        assert len(_select(database, refused=True)) >= 60


@settings(max_examples=400, deadline=None)
@given(
    query=st.sampled_from(_QUERIES),
    inserted=st.sampled_from(_INSERTED),
    share=st.floats(0, 1),
    other=st.sampled_from(["its own", "tsql", None]),
)
def test_nothing_hides_in_a_query(
    query: tuple[str | None, str], inserted: str, share: float, other: str | None
) -> None:
    """What is inserted between the tokens of a query is a change, or the text cannot be computed."""
    ends = [0, *(token.end for token in list_tokens(query[1], query[0] or ""))]
    place = ends[round(share * (len(ends) - 1))]
    text = f"{query[1][:place]} {inserted} {query[1][place:]}"
    database = query[0] if other == "its own" or "[" in text else other  # brackets hold a name in T-SQL
    found = _read(text, database)
    harmless = inserted in _NAMES_ELSEWHERE and database not in ("tsql", None)
    assert isinstance(found, str) or found["writes"] or harmless, (database, text, found)
