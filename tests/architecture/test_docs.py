"""Documentation pages: generated pages are current, links resolve, every setting is described."""

import re
from pathlib import Path

import pytest

from docs.glossary import PAGE, write_glossary
from service.settings import Settings
from tests.architecture.sources import ROOT, pages, place

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_glossary_is_generated_from_the_code() -> None:
    assert PAGE.read_text() == write_glossary(), "run: python -m docs.glossary"


@pytest.mark.parametrize("page", pages(), ids=place)
def test_page_links_resolve(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target


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
