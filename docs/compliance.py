"""The tables of compliance and threats, from `compliance.yaml`. `python -m docs.compliance` writes them into the pages.

The tables stand in the pages of the repository, too, unlike the references of `docs.references`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_suffix(".yaml")
STATES = ("supported", "partly", "untested", "not built", "operator")
REQUIREMENTS = ("No.", "Requirement", "State", "Tests that support it", "What the operator must still do")
HEADS: Mapping[str, tuple[str, ...]] = {
    "ai-act": REQUIREMENTS,
    "aisvs": REQUIREMENTS,
    "aisvs-drafts": REQUIREMENTS,
    "soc": REQUIREMENTS,
    "threats": ("No.", "Threat", "State", "Tests that support the defence", "What remains"),
}
"""The head of each table, by the name of the table in `compliance.yaml` and in the comment of its page."""
PAGES: Mapping[str, str] = {name: "security.md" if name == "threats" else "compliance.md" for name in HEADS}


@dataclass(frozen=True)
class Row:
    """A requirement or threat, what supports it, and what does not."""

    id: str
    text: str
    state: str
    tests: tuple[str, ...] = ()
    missing: str = ""
    operator: str = ""

    def __post_init__(self) -> None:
        """Refuse a row that claims more than it names."""
        if self.state not in STATES:
            raise ValueError(f"{self.id} has the state {self.state!r}; use one of {', '.join(STATES)}.")
        if bool(self.tests) != (self.state in ("supported", "partly")):
            raise ValueError(f"{self.id} is {self.state} with {len(self.tests)} tests. Correct the state or the tests.")
        if self.state in ("partly", "untested") and not self.missing:
            raise ValueError(f"{self.id} is {self.state} and does not say what is missing.")


def read_rows() -> dict[str, list[Row]]:
    """Return the rows of each table; raises `ValueError` or `TypeError` for a wrong row."""
    tables = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {
        name: [Row(**{**fields, "tests": tuple(fields.get("tests", ()))}) for fields in rows]
        for name, rows in tables.items()
    }


def write_table(name: str) -> str:
    """Return a table of a page in Markdown."""
    head = HEADS[name]
    rows = [_list_cells(row) for row in read_rows()[name]]
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def update_pages() -> Iterator[tuple[Path, str]]:
    """Yield each page with its current text."""
    for page in sorted(set(PAGES.values())):
        path = ROOT / "docs" / page
        text = path.read_text(encoding="utf-8")
        for name in (name for name, at in PAGES.items() if at == page):
            begin, rest = re.split(rf"(?<=<!-- generated: {name} -->\n)", text, maxsplit=1)
            text = f"{begin}{write_table(name)}\n{rest[rest.index('<!-- end -->') :]}"
        yield path, text


def _list_cells(row: Row) -> tuple[str, ...]:
    missing = row.missing if row.state == "untested" or not row.missing else f"Not built: {row.missing}"
    rest = " ".join(part for part in (missing, row.operator) if part)
    return row.id, row.text, row.state, ", ".join(map(_link, row.tests)) or "–", rest or "–"


def _link(test: str) -> str:
    file, *_, name = test.split("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{file})"


WRITERS: Mapping[str, Callable[[], str]] = {name: partial(write_table, name) for name in HEADS}
"""The writer of each table, by the name in the comment of its page."""

if __name__ == "__main__":
    for path, text in update_pages():
        path.write_text(text, encoding="utf-8")
