"""Documentation pages: generated pages are current, links resolve, every setting is described."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from docs.build import GENERATED, list_pages
from docs.references import WRITERS
from sayso.core.problems import PROBLEM_TYPES
from sayso.core.records.events import EventType, WebhookEvent
from sayso.gating.execution import GateOptions
from service.core.settings import Settings, variable_of
from tests.architecture.sources import ROOT, pages, place

SYMBOL = re.compile(r"`(\w+)`\s+(?:in|of)\s+\[[^\]]*\]\(([^)#\s]+\.py)\)")
"""A name in a module, such as `KINDS` in [table.py](table.py)."""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_pages_have_at_most_36000_words_beside_code() -> None:
    """References and tables of tests and benchmarks are generated; decisions are records, not pages to read through.

    A word has a letter or a digit; the bars of a table are none. See docs/decisions/words-beside-code.md.
    """
    hand_written = [page.read_text() for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"]
    table = re.compile(r"<!-- (support|measured) table.*?<!-- end of the \1 table -->", re.DOTALL)
    code = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
    words = [word for text in hand_written for word in code.sub("", GENERATED.sub("", table.sub("", text))).split()]
    assert sum(bool(re.search(r"\w", word)) for word in words) <= 36_000


def test_page_on_policies_has_at_most_1500_words() -> None:
    assert len((ROOT / "docs" / "policies.md").read_text().split()) <= 1_500


def test_every_page_is_in_the_navigation_or_the_list_of_decisions() -> None:
    shown = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]))
    shown |= {f"docs/decisions/{name}" for name in LINK.findall((ROOT / "docs/decisions/README.md").read_text())}
    assert {place(page) for page in list_pages()} - shown == {"demo/NOTICE.md"}


@pytest.mark.parametrize("page", pages(), ids=place)
def test_page_links_resolve(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", ["architecture.md", "extending.md"])
def test_symbols_of_linked_modules_exist(page: str) -> None:
    for name, target in SYMBOL.findall((ROOT / "docs" / page).read_text()):
        body = ast.parse((ROOT / "docs" / target).read_text()).body
        defined = {getattr(node, "name", None) for node in body}
        for node in body:
            assigned = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            defined |= {one.id for one in assigned if isinstance(one, ast.Name)}
        assert name in defined, f"stale link: {target} has no {name}"


def test_references_have_a_place_each() -> None:
    placed = [name for page in list_pages() for name in GENERATED.findall(page.read_text())]
    assert sorted(placed) == sorted(WRITERS)


@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ("settings", [variable_of(name) for name in Settings.model_fields]),
        (
            "commands",
            ["inbox", "keys create NAME", "policy check FILE", "policy shadow start", "webhooks add URL"],
        ),
        ("errors", [kind.__name__ for kind in PROBLEM_TYPES]),
        ("events", list(EventType)),
        ("webhook-events", list(WebhookEvent)),
        ("gate", [field.name for field in fields(GateOptions)]),
        ("routes", ["POST /runs", "POST /suspensions/{suspension_id}/items/{item_id}/decision", "GET /healthz"]),
        ("metrics", ["sayso_refused_requests_total", "sayso_cards"]),
    ],
)
def test_reference_names_everything_with_a_meaning(reference: str, names: list[str]) -> None:
    text = WRITERS[reference]()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert [row for row in rows if len(row) < 2 or not all(cell.strip() for cell in row)] == []
    known = [row[0].strip("`") + " " for row in rows]
    assert [name for name in names if not any(line.startswith((f"{name} ", f"{name}`")) for line in known)] == []


def test_facts_of_errors_are_found_where_they_are_raised() -> None:
    (row,) = (line for line in WRITERS["errors"]().splitlines() if line.startswith("| `AlreadyDecided` |"))
    assert "`decided_by`" in row


def test_pages_name_no_machine_or_registry() -> None:
    paths = re.compile(r"(^|[\s(`'\"])/(root|home|work|tmp)/|pypi\.org|pythonhosted|npmjs|deb\.debian")
    found = [
        f"{place(page)}:{number}"
        for page in pages()
        for number, line in enumerate(page.read_text().splitlines(), start=1)
        if paths.search(line)
    ]
    assert not found
