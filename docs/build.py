"""Write the pages of the documentation site to `.docs`, from where `make docs` builds the site.

The copy has the layout of the repository, so every relative link of a page leads to the same file in the site. A
reference stands where a page has `<!-- generated: NAME -->` and `<!-- end -->`; the text between them is for those who
read the page in the repository.
"""

import re
import shutil
from pathlib import Path

from docs.references import WRITERS

ROOT = Path(__file__).parents[1]
STAGE = ROOT / ".docs"
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "demo/NOTICE.md")
LINK = re.compile(r"\]\(([^)#\s]+)")
GENERATED = re.compile(r"<!-- generated: ([a-z-]+) -->.*?<!-- end -->", re.DOTALL)


def list_pages() -> list[Path]:
    """Return the hand-written pages of the site."""
    return [*(ROOT / name for name in TOP_PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


def stage() -> None:
    """Write the pages, and the files of the repository that they link to."""
    shutil.rmtree(STAGE, ignore_errors=True)
    style = ROOT / "docs" / "site.css"
    shutil.copyfile(style, _make_place(style))
    for page in list_pages():
        text = page.read_text(encoding="utf-8")
        _make_place(page).write_text(GENERATED.sub(lambda mark: WRITERS[mark[1]](), text), encoding="utf-8")
        for target in LINK.findall(text):
            linked = (page.parent / target).resolve()
            if linked.is_file() and linked.is_relative_to(ROOT) and linked.suffix != ".md":
                shutil.copyfile(linked, _make_place(linked))


def _make_place(file: Path) -> Path:
    place = STAGE / file.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


if __name__ == "__main__":
    stage()
