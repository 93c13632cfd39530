"""The documentation pages that tests read."""

import re
from pathlib import Path
from textwrap import dedent

DOCS = Path(__file__).parents[1] / "docs"


def read_page(name: str) -> str:
    """Return the text of a page, such as `policies/memory`."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def read_policies() -> str:
    """Return the pages with rules, but the cookbook, as one text."""
    names = ("policies", "policies/memory", "policies/life-cycle", "policies/advanced", "mandates", "aap")
    return "\n".join(read_page(name) for name in names)


def find_blocks(text: str, kind: str) -> list[str]:
    """Return the blocks of a kind, such as `yaml`, in the text of a page."""
    blocks = re.findall(rf"^( *)```{kind}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [dedent(block) for _, block in blocks]
