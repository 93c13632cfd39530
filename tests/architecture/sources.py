"""The source files that the architecture tests read."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sayso", "service", "workers", "launch", "demo")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    """Return every module of the product."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def functions() -> Iterator[tuple[Path, Function]]:
    """Yield every function and method of the product with its module."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield path, node


def pages() -> list[Path]:
    """Return every Markdown page of the repository."""
    hidden = (".", "node_modules")
    paths = sorted(ROOT.rglob("*.md"))
    return [path for path in paths if not any(part.startswith(hidden) for part in place(path).split("/"))]


def place(path: Path) -> str:
    """Return a file's path inside the repository."""
    return str(path.relative_to(ROOT))
