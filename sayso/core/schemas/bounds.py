"""Limits for JSON Schemas from outside, and the cost of evaluating one, counted without evaluating it.

Evaluation visits each pair of a schema part and a value part at most once. `weigh` counts the parts with references
expanded. A schema that it cannot count is `apart`: only a process that can be killed may evaluate it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput

MAX_STEPS = 10_000

_WIDE_STEPS = 10  # the steps of a class of nearly all characters, which may take several bytes
_CLASSES = {"d": 1, "w": 1, "s": _WIDE_STEPS, "D": _WIDE_STEPS, "W": _WIDE_STEPS, "S": _WIDE_STEPS}
_ESCAPES = _CLASSES | dict.fromkeys("bBtnrfv0", 1)
_REPETITION = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\}")
_CLASS = re.compile(r"\[(\^?)((?:[^\]\[\\]|\\[^pPuUxkQE1-9])+)\]", re.DOTALL)


def weigh_pattern(pattern: str) -> int | None:
    """Return the steps of a pattern, the most that a linear search takes for each byte of the text.

    Return None for lookarounds, backreferences, Unicode properties and flags, which are not counted.
    """
    groups, last, place = [0], 0, 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "(":
            if pattern.startswith("(?", place) and not pattern.startswith("(?:", place):
                return None
            groups.append(0)
            last = 0
            place += 3 if pattern.startswith("(?:", place) else 1
        elif sign == ")":
            if len(groups) == 1:
                return None
            last = groups.pop()
            groups[-1] += last
            place += 1
        elif sign in "*+?|^$":
            place += 1
        else:
            match = _REPETITION.match(pattern, place) if sign == "{" else None
            if match is not None:
                added = last * (max(int(match[1]), int(match[3] or 0)) - 1)
                last += added
                step, length = added, len(match[0])
            else:
                step, length = _read_step(pattern, place)
                last = step
            if not length or groups[-1] + step > MAX_STEPS:
                return None
            groups[-1] += step
            place += length
    return groups[0] + 1 if len(groups) == 1 else None


def _read_step(pattern: str, place: int) -> tuple[int, int]:
    """Return the steps and length of the character or class at `place`; (0, 0) for anything else."""
    sign = pattern[place]
    if sign == "\\":
        escaped = pattern[place + 1 : place + 2]
        if escaped in _ESCAPES:
            return _ESCAPES[escaped], 2
        return (1, 2) if escaped and escaped.isascii() and not escaped.isalnum() else (0, 0)
    if sign == "[":
        match = _CLASS.match(pattern, place)
        if match is None or "&&" in match[2] or "--" in match[2] or "~~" in match[2]:
            return 0, 0
        plain = not match[1] and match[2].isascii() and not re.search(r"\\[DWSs]", match[2])
        return (1 if plain else _WIDE_STEPS), len(match[0])
    if sign in "{}":
        return 0, 0
    return (_WIDE_STEPS if sign == "." else len(sign.encode("utf-8", "surrogatepass"))), 1


MAX_BYTES = 131_072
MAX_DEPTH = 32
MAX_VALUES = 10_000
MAX_ALTERNATIVES = 1_000
MAX_REFS = 1_000
MAX_PATTERNS = 200
MAX_PATTERN_CHARS = 1_000
MAX_PARTS = 200_000  # the limit of parts after all references are expanded
MAX_PROBLEM_CHARS = 1_000
_INSTANCE_CHARS = 100
_DIVISION_PARTS = 500  # the cost of an exact division of decimal fractions, in parts
_UNKNOWN_STEPS = 10**9  # the steps of a pattern that cannot be counted
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_BRANCHES = (*_ALTERNATIVES, "not", "if", "contains", "dependentSchemas", "dependencies", "propertyNames")
_REFERRING = {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$vocabulary"}
_CONTENT = {"contentEncoding", "contentMediaType", "contentSchema"}
_APART = frozenset(_REFERRING | _CONTENT | {"unevaluatedItems", "unevaluatedProperties"})
"""Keywords whose cost is unknown; `$id` changes the meaning of references."""

_BRANCH_KEYS = frozenset(_BRANCHES)
_KEYWORDS = _BRANCH_KEYS | _APART | {"$schema", "$ref", "pattern", "patternProperties", "multipleOf", "format"}
_DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
)


@dataclass(frozen=True, slots=True)
class Weight:
    """The size of a schema; `parts` and `pattern` count expanded references, `levels` nested alternatives."""

    values: int
    parts: int
    pattern: int
    levels: int
    formats: frozenset[str]
    apart: bool


class _Cost(NamedTuple):
    parts: int
    pattern: int
    levels: int


def weigh(schema: JsonObject) -> Weight:
    """Return the size of a schema; raises `InvalidInput` when it is over a limit."""
    check_size(schema)
    counts = _measure(schema)
    if not counts.refs:
        cost: _Cost | None = _Cost(counts.values + counts.divisions * _DIVISION_PARTS, counts.pattern, counts.levels)
    else:
        cost = _expand(schema)
    if cost is None:
        return Weight(counts.values, 0, 0, 0, frozenset(counts.formats), apart=True)
    if cost.parts > MAX_PARTS:
        raise _refuse(f"its references expand to more than {MAX_PARTS} parts")
    apart = counts.apart or cost.pattern >= _UNKNOWN_STEPS
    return Weight(counts.values, cost.parts, cost.pattern, cost.levels, frozenset(counts.formats), apart)


def check_size(schema: JsonObject) -> int:
    """Return the size of a schema in bytes; raises `InvalidInput` above `MAX_BYTES`."""
    size = len(to_json(schema))
    if size > MAX_BYTES:
        raise _refuse(f"it has {size} bytes; the limit is {MAX_BYTES}")
    return size


def without_argument(schema: JsonObject, name: str) -> JsonObject:
    """Return the schema for arguments of which one is unknown: it may be missing or have any value."""
    ref = schema.get("$ref")
    target = resolve(ref, schema) if isinstance(ref, str) else None
    if isinstance(target, dict):
        schema = {key: value for key, value in schema.items() if key != "$ref"} | target
    required, properties = schema.get("required"), schema.get("properties")
    opened = dict(schema)
    if isinstance(required, list):
        opened["required"] = [key for key in required if key != name]
    if isinstance(properties, dict) and name in properties:
        opened["properties"] = properties | {name: {}}
    return opened


def describe_misfit(error: Any) -> str:
    """Return the message of a validation error, shortened. An enum lists its values, or their place."""
    if error.kind.name == "enum":
        options = [to_json(option).decode() for option in error.kind.options]
        shown, length = 0, 0
        for option in options:
            length += len(option) + 2
            if length > MAX_PROBLEM_CHARS:
                break
            shown += 1
        given = to_json(error.instance).decode()
        given = given if len(given) <= _INSTANCE_CHARS else f"{given[:_INSTANCE_CHARS]}…"
        problem = f"{given} is not one of {', '.join(options[:shown])}"
        if shown == len(options):
            return problem
        place = "/".join(str(part) for part in error.schema_path)[:MAX_PROBLEM_CHARS]
        return f"{problem} and {len(options) - shown} more; the schema lists them at {place}"
    message = str(error.message)
    if len(message) <= MAX_PROBLEM_CHARS:
        return message
    half = MAX_PROBLEM_CHARS // 2
    return f"{message[:half]} … {message[-half:]}"


@dataclass(slots=True)
class _Counts:
    values: int = 0
    alternatives: int = 0
    refs: int = 0
    patterns: int = 0
    pattern: int = 0
    divisions: int = 0
    levels: int = 0
    formats: set[str] = field(default_factory=set)
    apart: bool = False


def _measure(schema: JsonObject) -> _Counts:
    counts = _Counts()
    level: list[tuple[Any, int]] = [(schema, 0)]
    for _ in range(MAX_DEPTH + 1):
        below: list[tuple[Any, int]] = []
        counts.values += len(level)
        if counts.values > MAX_VALUES:
            raise _refuse(f"it has more than {MAX_VALUES} values")
        for node, branches in level:
            if isinstance(node, dict):
                levels = branches + _count(counts, node)
                counts.levels = max(counts.levels, levels)
                below += [(child, levels) for child in node.values()]
            elif isinstance(node, list | tuple):
                below += [(child, branches) for child in node]
        if not below:
            break
        level = below
    else:
        raise _refuse(f"it is nested deeper than {MAX_DEPTH} levels")
    for number, limit, what in (
        (counts.alternatives, MAX_ALTERNATIVES, "alternatives"),
        (counts.refs, MAX_REFS, "references"),
        (counts.patterns, MAX_PATTERNS, "patterns"),
    ):
        if number > limit:
            raise _refuse(f"it has {number} {what}; the limit is {limit}")
    return counts


def _count(counts: _Counts, node: dict[str, Any]) -> bool:
    """Add one object of the schema; return whether it has alternatives, or a part that may fail without an error."""
    if _KEYWORDS.isdisjoint(node):
        return False
    draft, patterns = node.get("$schema"), [*_patterns_of(node)]
    foreign = isinstance(draft, str) and draft.rstrip("#") not in _DRAFTS
    counts.apart = counts.apart or foreign or not _APART.isdisjoint(node)
    counts.alternatives += sum(len(node[key]) for key in _ALTERNATIVES if isinstance(node.get(key), list))
    counts.alternatives += sum(key in node for key in _BRANCHES if key not in _ALTERNATIVES)
    counts.refs += isinstance(node.get("$ref"), str)
    longest = max(map(len, patterns), default=0)
    if longest > MAX_PATTERN_CHARS:
        raise _refuse(f"it has a pattern of {longest} characters; the limit is {MAX_PATTERN_CHARS}")
    counts.patterns += len(patterns)
    counts.pattern += sum(map(_weigh_pattern, patterns))
    counts.divisions += isinstance(node.get("multipleOf"), int | float)
    if isinstance(node.get("format"), str):
        counts.formats.add(node["format"])
    return not _BRANCH_KEYS.isdisjoint(node)


def _patterns_of(node: dict[str, Any]) -> Iterator[str]:
    if isinstance(node.get("pattern"), str):
        yield node["pattern"]
    if isinstance(node.get("patternProperties"), dict):
        yield from node["patternProperties"]


def _expand(schema: JsonObject) -> _Cost | None:
    """Return the cost with references expanded; None when one is recursive or has no target."""
    done: dict[int, _Cost] = {}
    begun: set[int] = set()
    stack: list[tuple[Any, bool]] = [(schema, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        following = _follow(node, schema)
        if following is None or (id(node) in begun and not ready):
            return None
        if ready:
            begun.discard(id(node))
            done[id(node)] = _add_up(node, [done[id(child)] for child in following])
        else:
            begun.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in following)
    return done[id(schema)]


def _follow(node: Any, root: JsonObject) -> list[Any] | None:
    """Return the objects and lists in a node, and the target of its reference; None when the target is missing."""
    inside = node.values() if isinstance(node, dict) else node
    children: list[Any] = [child for child in inside if isinstance(child, dict | list | tuple)]
    ref = node.get("$ref") if isinstance(node, dict) else None
    if isinstance(ref, str):
        target = resolve(ref, root)
        if target is None:
            return None
        children.append(target)
    return children


def resolve(ref: str, root: JsonObject) -> Any:
    """Return the part of the schema that a local reference names; None without one."""
    if ref != "#" and not ref.startswith("#/"):
        return None
    node: Any = root
    for part in ref.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and key.isdecimal() and len(key) < 6 and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node if isinstance(node, dict) else None


def _add_up(node: Any, inside: list[_Cost]) -> _Cost:
    parts = 1 + sum(cost.parts for cost in inside) + len(node) - len(inside)
    pattern = sum(cost.pattern for cost in inside)
    levels = max((cost.levels for cost in inside), default=0)
    if isinstance(node, dict):
        parts += _DIVISION_PARTS if isinstance(node.get("multipleOf"), int | float) else 0
        levels += not _BRANCH_KEYS.isdisjoint(node)
        pattern += sum(map(_weigh_pattern, _patterns_of(node)))
    return _Cost(min(parts, MAX_PARTS + 1), min(pattern, _UNKNOWN_STEPS), levels)


@lru_cache(maxsize=1024)
def _weigh_pattern(pattern: str) -> int:
    steps = weigh_pattern(pattern)
    return _UNKNOWN_STEPS if steps is None else steps


def _refuse(problem: str) -> InvalidInput:
    message = f"The schema cannot be used: {problem}. Ask the agent's developer to make it smaller."
    return InvalidInput(message, problems=[problem])
