"""The tables of compliance and threats name tests that exist, leave out no threat, and are current in their pages."""

import ast
import re
from functools import cache

import pytest

from docs.compliance import HEADS, Row, read_rows, update_pages
from tests.architecture.sources import ROOT, place

ROWS = [(name, row) for name, rows in read_rows().items() for row in rows]
THREATS = [f"T{number}" for number in range(1, 46)]


@pytest.mark.parametrize(("table", "row"), ROWS, ids=lambda one: getattr(one, "id", one))
def test_row_names_tests_that_exist(table: str, row: Row) -> None:
    assert table in HEADS
    assert [test for test in row.tests if test not in list_tests(test.partition("::")[0])] == [], (
        "correct compliance.yaml"
    )
    assert len(set(row.tests)) == len(row.tests)


def test_missing_function_and_file_are_found() -> None:
    assert "tests/architecture/test_compliance.py::test_missing_function_and_file_are_found" in list_tests(
        "tests/architecture/test_compliance.py"
    )
    assert "tests/architecture/test_compliance.py::test_nothing" not in list_tests(
        "tests/architecture/test_compliance.py"
    )
    assert list_tests("tests/architecture/test_nowhere.py") == set()


def test_every_threat_has_a_row() -> None:
    assert [row.id for row in read_rows()["threats"]] == THREATS


def test_requirement_has_one_row_and_says_what_the_operator_must_do() -> None:
    for name, rows in read_rows().items():
        assert len({row.id for row in rows}) == len(rows), name
        assert [row.id for row in rows if not row.operator and name != "threats"] == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"state": "satisfied"}, "use one of"),
        ({"state": "supported"}, "0 tests"),
        ({"state": "not built", "tests": ("a",)}, "1 tests"),
        ({"state": "partly", "tests": ("a",)}, "what is missing"),
    ],
)
def test_row_that_claims_too_much_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Row(**{"id": "T0", "text": "A threat.", **fields})  # type: ignore[arg-type]


def test_tables_are_current_in_their_pages() -> None:
    stale = [place(path) for path, text in update_pages() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python -m docs.compliance"


def test_pages_say_supports_and_never_satisfies() -> None:
    for page in ("compliance.md", "security.md"):
        assert not re.search(r"\b(satisf\w+|compliant|fulfil\w*)\b", (ROOT / "docs" / page).read_text(), re.IGNORECASE)


@cache
def list_tests(file: str) -> set[str]:
    """Return the tests of a file as pytest names them; a file that does not exist has none."""
    path = ROOT / file
    if not path.is_file():
        return set()
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        names = [one.name for one in inner if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {f"{file}::{prefix}{name}" for name in names if name.startswith("test_")}
    return found
