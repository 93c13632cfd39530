"""Copy the pages of the documentation site to `.docs`, from where `make docs` builds the site.

The copy has the layout of the repository, so every relative link of a page leads to the same file in the site.
"""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGE = ROOT / ".docs"
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\]\(([^)#\s]+)")


def list_pages() -> list[Path]:
    """Return the hand-written pages of the site."""
    return [*(ROOT / name for name in TOP_PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


def stage() -> None:
    """Write the pages, and the files of the repository that they link to."""
    shutil.rmtree(STAGE, ignore_errors=True)
    for page in list_pages():
        _copy(page)
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            linked = (page.parent / target).resolve()
            if linked.is_file() and linked.is_relative_to(ROOT):
                _copy(linked)


def _copy(file: Path) -> None:
    place = STAGE / file.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)


if __name__ == "__main__":
    stage()
