"""Folders, modules and functions stay small."""

import ast
from collections import Counter

import pytest

from tests.architecture.sources import Function, functions, modules, place

FOLDER_MODULES = 17
MODULE_LINES = 400
MODULE_MEDIAN = 175
FUNCTION_LINES = 50
FUNCTION_MEDIAN = 8


def test_folder_has_few_modules() -> None:
    counts = Counter(place(path.parent) for path in modules() if path.name != "__init__.py")
    assert [f"{folder}: {count}" for folder, count in counts.items() if count > FOLDER_MODULES] == []


def test_module_is_short() -> None:
    sizes = {place(path): len(path.read_text().splitlines()) for path in modules()}
    assert [f"{module}: {size}" for module, size in sizes.items() if size > MODULE_LINES] == []
    assert sorted(sizes.values())[len(sizes) // 2] <= MODULE_MEDIAN


def test_function_is_short() -> None:
    sizes = {f"{place(path)}:{node.lineno} {node.name}": _count_lines(node) for path, node in functions()}
    assert [f"{function}: {size}" for function, size in sizes.items() if size > FUNCTION_LINES] == []
    assert sorted(sizes.values())[len(sizes) // 2] <= FUNCTION_MEDIAN


@pytest.mark.parametrize("decorated", ["", "@mark\n"])
def test_docstring_does_not_count_as_lines(decorated: str) -> None:
    (function,) = ast.parse(f'{decorated}def f():\n    """Say."""\n    a = 1\n    return a\n').body
    assert isinstance(function, Function)
    assert _count_lines(function) == 2


def _count_lines(node: Function) -> int:
    body = node.body if ast.get_docstring(node) is None else node.body[1:]
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
