"""No two places of the product share twelve lines, copied or alike but for names and literals.

Imports, docstrings and blank lines do not count. In a declaration the name is the content: classes, fields, constants,
attributes that are literals and functions that return one are alike only where their names and types are equal.
"""

import ast
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.architecture.sources import modules, place

SHARED_LINES = 12
SEED_STEPS = 3
Alike = tuple[str, range, str, range]


@dataclass(frozen=True)
class Step:
    """A simple statement, or the head of a compound one, without its names and literals."""

    shape: str
    lines: frozenset[int] = frozenset()


class _Blank(ast.NodeTransformer):
    """Replace names, attributes, literals and annotations by one placeholder."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.JoinedStr):
            return ast.Name("_", ast.Load())
        return super().visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return ast.keyword("_", self.visit(node.value))

    def visit_arg(self, _: ast.arg) -> ast.AST:
        return ast.arg("_")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        value = ast.Name("_", ast.Load()) if node.value is None else self.visit(node.value)
        return ast.Assign([ast.Name("_", ast.Load())], value)


@pytest.mark.timeout(400)  # it compares the whole product; over 120 s on a busy machine
def test_no_two_places_share_twelve_lines() -> None:
    found = shared_places(product())
    assert not found, "\n".join(found)


def test_a_copy_with_other_names_and_literals_is_found() -> None:
    body = "\n".join(f"    total = add(total, values[{n}], limit={n})" for n in range(11))
    other = body.replace("total", "amount").replace("add", "self.sum").replace("limit", "most")
    texts = {"a.py": f"def first(values):\n{body}\n", "b.py": f"x = 1\n\n\ndef other(values: list):\n{other}\n"}
    assert shared_places(texts) == ["a.py:1-12 b.py:4-15"]


def test_declarations_are_alike_only_with_their_names() -> None:
    fields = "\n".join(f"    field_{n}: int = {n}" for n in range(12))
    models = {"a.py": f"class A:\n{fields}\n", "b.py": f"class B:\n{fields}\n"}
    assert shared_places(models) == ["a.py:2-13 b.py:2-13"]
    assert shared_places({**models, "b.py": models["b.py"].replace("field", "other")}) == []


def product() -> dict[str, str]:
    """Return the text of every module of the product by its path."""
    return {place(path): path.read_text() for path in modules()}


def shared_places(texts: dict[str, str]) -> list[str]:
    """Return the pairs of places that share `SHARED_LINES` lines or more, one line a pair."""
    steps = {module: list(_steps(ast.parse(text).body, declares=True)) for module, text in texts.items()}
    return sorted(
        f"{left}:{a.start}-{a.stop - 1} {right}:{b.start}-{b.stop - 1}" for left, a, right, b in _alike(steps)
    )


def _alike(places: dict[str, list[Step]]) -> Iterator[Alike]:
    shapes = {module: [step.shape for step in steps] for module, steps in places.items()}
    needed = {module: _count_needed(steps) for module, steps in places.items()}
    for (left, i), (right, j) in _seeds(places):
        least = max(needed[left][i], needed[right][j])
        if shapes[left][i : i + least] != shapes[right][j : j + least]:
            continue
        a, b = places[left], places[right]
        if i and j and a[i - 1].shape == b[j - 1].shape:
            continue  # the run that begins one step earlier covers this one
        most = min(len(a) - i, len(b) - j, j - i if left == right else len(a))
        size = next((n for n in range(most) if a[i + n].shape != b[j + n].shape), most)
        lines = _lines(a[i : i + size]), _lines(b[j : j + size])
        if min(map(len, lines)) >= SHARED_LINES:
            yield left, _span(lines[0]), right, _span(lines[1])


def _count_needed(steps: list[Step]) -> list[int]:
    """Return for each step how many steps from there on it takes to have `SHARED_LINES` lines."""
    needed, end = [], 0
    lines: Counter[int] = Counter()
    for start in range(len(steps)):
        while end < len(steps) and len(lines) < SHARED_LINES:
            lines.update(steps[end].lines)
            end += 1
        needed.append(end - start)
        lines -= Counter(steps[start].lines)
    return needed


def _seeds(texts: dict[str, list[Step]]) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Yield each pair of places that begin with the same few steps."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for module, steps in texts.items():
        for start in range(len(steps)):
            for size in range(1, SEED_STEPS + 1):
                window = steps[start : start + size]
                if size == SEED_STEPS or len(_lines(window)) >= SHARED_LINES:
                    places[tuple(step.shape for step in window)].append((module, start))
                    break
    for alike in places.values():
        yield from itertools.combinations(alike, 2)


def _steps(body: Iterable[ast.stmt], *, declares: bool) -> Iterator[Step]:
    """Yield the statements in the order of the text; a nested body is enclosed in two steps without lines."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node):
            continue
        inner = list(_bodies(node))
        lines = frozenset(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.FunctionDef) and _returns_literal(node):
            yield Step(f"literal {node.name}", lines)
        elif not inner:
            yield Step(f"{_declared(node) if declares or _names_literal(node) else ''} {_shape(node)}", lines)
        else:
            yield _head(node, inner[0][1][0].lineno)
            for field, statements in inner:
                yield Step(field)
                yield from _steps(statements, declares=isinstance(node, ast.ClassDef))
            yield Step("end")


def _bodies(node: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    for field in ("body", "orelse", "finalbody"):
        if body := getattr(node, field, None):
            yield field, body
    for handler in getattr(node, "handlers", []):
        yield "except", handler.body
    for case in getattr(node, "cases", []):
        yield "case", case.body


def _head(node: ast.stmt, first_line: int) -> Step:
    emptied = {"body": [ast.Pass()], "orelse": [], "finalbody": [], "type_params": [], "returns": None}
    head = type(node)(**{name: emptied.get(name, value) for name, value in ast.iter_fields(node)})
    if isinstance(head, ast.Try | ast.TryStar):
        head.handlers = [ast.ExceptHandler(handler.type, None, [ast.Pass()]) for handler in head.handlers]
        head.finalbody = [] if head.handlers else [ast.Pass()]
    elif isinstance(head, ast.Match):
        head.cases = [ast.match_case(case.pattern, case.guard, [ast.Pass()]) for case in head.cases]
    elif isinstance(head, ast.FunctionDef | ast.AsyncFunctionDef):
        head.name = "_"
    start = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])
    return Step(_shape(head), frozenset(range(start, max(first_line, start + 1))))


def _shape(node: ast.stmt) -> str:
    return ast.dump(_Blank().visit(ast.parse(ast.unparse(ast.fix_missing_locations(node)))))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _returns_literal(node: ast.FunctionDef) -> bool:
    body = [step for step in node.body if not _is_text(step)]
    return (
        len(body) == 1 and isinstance(body[0], ast.Return) and isinstance(body[0].value, ast.Constant | ast.JoinedStr)
    )


def _names_literal(node: ast.stmt) -> bool:
    """Whether the statement gives a literal to an attribute, such as `self.cards = f"{prefix}cards"`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
        return False
    return isinstance(node.value, ast.Constant | ast.JoinedStr)


def _declared(node: ast.stmt) -> str:
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(ast.AnnAssign(node.target, node.annotation, None, node.simple))
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""


def _lines(steps: Iterable[Step]) -> frozenset[int]:
    return frozenset().union(*(step.lines for step in steps))


def _span(lines: frozenset[int]) -> range:
    return range(min(lines), max(lines) + 1)


if __name__ == "__main__":
    print("\n".join(shared_places(product())))
