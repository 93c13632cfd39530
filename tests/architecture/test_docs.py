"""Documentation pages: generated pages are current, links resolve, every setting is described."""

import ast
import re
from pathlib import Path

import pytest

from docs.glossary import PAGE, write_glossary
from service.core.settings import Settings
from tests.architecture.sources import ROOT, pages, place

SYMBOL = re.compile(r"`(\w+)`\s+(?:in|of)\s+\[[^\]]*\]\(([^)#\s]+\.py)\)")
"""A name in a module, such as `KINDS` in [table.py](table.py)."""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_glossary_is_generated_from_the_code() -> None:
    assert PAGE.read_text() == write_glossary(), "run: python -m docs.glossary"


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


def test_every_setting_is_described() -> None:
    described = (ROOT / "docs" / "settings.md").read_text()
    assert [name for name in Settings.model_fields if f"SAYSO_{name.upper()}" not in described] == []


def test_pages_name_no_machine_or_registry() -> None:
    paths = re.compile(r"(^|[\s(`'\"])/(root|home|work|tmp)/|pypi\.org|pythonhosted|npmjs|deb\.debian")
    found = [
        f"{place(page)}:{number}"
        for page in pages()
        for number, line in enumerate(page.read_text().splitlines(), start=1)
        if paths.search(line)
    ]
    assert not found
