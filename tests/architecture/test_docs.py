"""The documents say what is: generated pages are fresh, links lead somewhere, settings are all described."""

import re
from pathlib import Path

import pytest

from docs.glossary import PAGE, write_glossary
from service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    path
    for path in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part == "node_modules" for part in path.relative_to(ROOT).parts)
]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_the_glossary_is_the_one_in_the_code() -> None:
    assert PAGE.read_text() == write_glossary(), "run: python -m docs.glossary"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_in_the_documents_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target


def test_every_setting_is_described() -> None:
    described = (ROOT / "docs" / "settings.md").read_text()
    assert [name for name in Settings.model_fields if f"SAYSO_{name.upper()}" not in described] == []


def test_the_documents_name_no_machine_and_no_registry() -> None:
    paths = re.compile(r"(^|[\s(`'\"])/(root|home|work|tmp)/|pypi\.org|pythonhosted|npmjs|deb\.debian")
    found = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in PAGES
        for number, line in enumerate(page.read_text().splitlines(), start=1)
        if paths.search(line)
    ]
    assert not found
