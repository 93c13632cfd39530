"""A corpus of SQL for each database: what ordinary texts do, and texts that hide what they do.

The answers are stated by hand from the manuals of the databases; `databases` with null is a text without a database.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sayso.policy.words.faults import Uncomputable
from sayso.policy.words.sql import DATABASES, read_sql

_LINES = (Path(__file__).parent / "sql_texts.jsonl").read_text().splitlines()
_TEXTS = [(database, line) for line in map(json.loads, _LINES) for database in line["databases"]]
_ANYWHERE = [None, *DATABASES]


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
