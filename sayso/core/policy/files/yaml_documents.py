"""Reading of YAML as JSON with the place of every value.

Anchors, aliases and tags are refused: they hide content from a reader, and can expand without limit. Words such as
`no` and `on` are text.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import JsonValue

from sayso.core.canonical_json import MAX_DIGITS

MAX_BYTES = 262_144
MAX_DEPTH = 24

Loc = tuple[str | int, ...]  # the keys and indexes from the top of the document to a value
_TAG = "tag:yaml.org,2002:"
_SCALARS: dict[str, tuple[str, str, Callable[[str], JsonValue]]] = {
    f"{_TAG}null": (r"^(?:~|null|Null|NULL|)$", "~nN", lambda _: None),
    f"{_TAG}bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF", lambda text: text.lower() == "true"),
    f"{_TAG}int": (rf"^-?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})$", "-0123456789", int),
    f"{_TAG}float": (r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", "-0123456789", float),
}


@dataclass(frozen=True, order=True, slots=True)
class Problem:
    """A fault in a file: its place and what to do. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.problem}"


@dataclass(slots=True)
class Document:
    """A document's content, the places of its values and keys, and the problems found."""

    file: str
    content: Any = None
    problems: list[Problem] = field(default_factory=list)
    values: dict[Loc, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Loc, tuple[int, int]] = field(default_factory=dict)
    faulty: set[tuple[int, int]] = field(default_factory=set)

    def report(self, loc: Loc, problem: str, *, at_key: bool = False) -> None:
        """Add a problem at the value (or the key) under `loc`, or at the closest existing place around it."""
        place = self.keys.get(loc) if at_key else None
        for length in range(len(loc), -1, -1):
            place = place or self.values.get(loc[:length])
        self.report_at(*(place or (1, 1)), problem)

    def report_at(self, line: int, column: int, problem: str) -> None:
        self.problems.append(Problem(self.file, line, column, problem))
        self.faulty.add((line, column))

    def has_problem(self, loc: Loc) -> bool:
        """Whether the key or the value under `loc` has a problem already."""
        return self.keys.get(loc) in self.faulty or self.values.get(loc) in self.faulty


def read_document(raw: bytes, file: str) -> Document:
    """Return the document in `raw`, with its problems."""
    document = Document(file)
    if len(raw) > MAX_BYTES:
        document.report_at(1, 1, f"the file is larger than {MAX_BYTES} bytes; shorten it")
        return document
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        document.report_at(raw.count(b"\n", 0, error.start) + 1, 1, "the line is not UTF-8; save the file as UTF-8")
        return document
    try:
        root = _Composer(text, document).get_single_node()
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = (before.count("\n") + 1, error.position - before.rfind("\n"))
        document.report_at(*place, "there is a control character here; delete it")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = f"this is not YAML: {error.problem or error.context}; check the indentation and quotes"
        document.report_at(*(_place(mark) if mark else (1, 1)), problem)
    else:
        document.content = _read(root, (), document) if root else None
    return document


class _Composer(yaml.SafeLoader):
    def __init__(self, text: str, document: Document) -> None:
        super().__init__(text)
        self._document = document
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        parser: Any = self
        event = parser.peek_event()
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            parser.get_event()
            self._document.report_at(*_place(mark), "aliases (*) are not supported; write the value itself")
            return yaml.ScalarNode(f"{_TAG}null", "", mark, mark)
        if event.anchor or event.tag:
            self._document.report_at(*_place(mark), "anchors (&) and tags (!) are not supported; remove it")
            event.anchor = event.tag = None
        if self._depth >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(None, None, f"nested deeper than {MAX_DEPTH} levels", mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_Composer.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first, _) in _SCALARS.items():
    _Composer.add_implicit_resolver(_tag, re.compile(_pattern), [*_first, ""] if _tag.endswith("null") else [*_first])


def _read(node: yaml.Node, loc: Loc, document: Document) -> JsonValue:
    document.values[loc] = _place(node.start_mark)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            line, column = _place(key_node.start_mark)
            key = key_node.value
            if key_node.tag != f"{_TAG}str" or not isinstance(key, str):
                document.report_at(line, column, "a key must be a text; put it in quotes")
            elif key in mapping:
                first, _ = document.keys[*loc, key]
                document.report_at(line, column, f"`{key}` is duplicated, first on line {first}; remove one")
            else:
                document.keys[*loc, key] = (line, column)
                mapping[key] = _read(value_node, (*loc, key), document)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_read(child, (*loc, index), document) for index, child in enumerate(node.value)]
    value: JsonValue = _SCALARS[node.tag][2](node.value) if node.tag in _SCALARS else str(node.value)
    if isinstance(value, float) and not math.isfinite(value):
        document.report(loc, "the number is too large; use a smaller one, or a text in quotes")
        return None
    if isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value):
        document.report(loc, "the text has half of a surrogate pair; use whole characters")
        return None
    return value


def _place(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1
