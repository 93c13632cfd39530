"""Frozen models for tool definitions, calls and results, and which names of tools look alike."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import Field, JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject, digest_json, parse_json
from sayso.core.records.base import Immutable, is_empty
from sayso.core.text.redaction import has_secrets, list_secret_paths
from sayso.errors import InvalidInput

NAME_PATTERN = "^[A-Za-z0-9_./:-]+$"

NAME_CHARACTERS = "only ASCII letters, digits and _ - . / :"
MAX_NAME_CHARS = 200

ToolName = Annotated[str, Field(pattern=NAME_PATTERN, min_length=1, max_length=MAX_NAME_CHARS)]

_LETTERS = re.compile(r"[A-Za-z0-9_./:-]*")
_SEPARATORS = re.compile(r"[_\-./:\s]+")
_ALL = "".join(chr(code) for code in range(33, 127) if re.match(NAME_PATTERN, chr(code)))
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "2": "z", "8": "b"})
_PAIRS = str.maketrans({"m": "rn", "w": "vv", "d": "cl"})
"""Letters that look like two others. Both sides are expanded, so a separator between them does not matter."""

_SECOND_HALVES = {"r": "n", "v": "v", "c": "l"}
_FIRST_HALVES = {second: first for first, second in _SECOND_HALVES.items()}
_SHORTEST_STRETCH = 3  # a pattern with fewer letters in a row, such as `c*`, is no name that another could look like
_FIRST, _LAST = re.compile(r"[*?\[]"), re.compile(r"[*?\]]")
_WILDCARDS = re.compile(r"[*?]|\[!?\]?[^\]]*\]")
_PARTS = re.compile(r"(?P<star>\*+)|(?P<one>\?)|(?P<range>\[!?\]?[^\]]*\])|(?P<gap>[_\-./:\s]+)|(?P<letter>.)", re.S)


def check_tool_name(name: str) -> str:
    """Return the name; raises `InvalidInput` when no tool can have it."""
    if (fault := find_name_fault(name)) is not None:
        raise InvalidInput(f"T{fault[1:]}")
    return name


def find_name_fault(name: str) -> str | None:
    """Return why no tool can have this name, or None."""
    shown = ascii(name[:80])
    if not name or len(name) > MAX_NAME_CHARS:
        return f"the tool name {shown} has {len(name)} characters. Use 1 to {MAX_NAME_CHARS}."
    fitting = _LETTERS.match(name)
    place = fitting.end() if fitting is not None else 0
    if place == len(name):
        return None
    sign = f"{name[place]!a} (U+{ord(name[place]):04X})"
    return f"the tool name {shown} has {sign} as character {place + 1}. Rename it: a name has {NAME_CHARACTERS}."


@lru_cache(maxsize=4096)
def find_alike(patterns: frozenset[str], name: str) -> frozenset[str]:
    """Return the patterns that a tool's name looks like but does not match."""
    written = [_write_name(name, pairs) for pairs in (False, True)]
    named = filter(_is_name, patterns)
    return frozenset(pattern for pattern in named if _fits(pattern, written) and not fnmatchcase(name, pattern))


@lru_cache(maxsize=16_384)
def _is_name(pattern: str) -> bool:
    stretches = _WILDCARDS.split(pattern)
    return len(stretches) == 1 or any(len(stretch) >= _SHORTEST_STRETCH for stretch in stretches)


def _fits(pattern: str, written: list[str]) -> bool:
    for pairs, text in enumerate(written):
        outline, letters = _outline(pattern, bool(pairs)), text.replace("|", "")
        if outline.plain:
            fits = letters == outline.head
        else:  # the expression is built only when both ends match
            near = letters.startswith(outline.head) and letters.endswith(outline.tail)
            fits = near and _build_pattern(pattern, bool(pairs)).fullmatch(text) is not None
        if fits:
            return True
    return False


class _Outline(NamedTuple):
    """The letters before a pattern's first wildcard and after its last; `plain` without wildcards."""

    head: str
    tail: str
    plain: bool


@lru_cache(maxsize=16_384)
def _outline(pattern: str, pairs: bool) -> _Outline:
    ends = [_skeleton(_SEPARATORS.sub("", end), pairs) for end in (_FIRST.split(pattern)[0], _LAST.split(pattern)[-1])]
    return _Outline(ends[0], ends[1], ends[0] == ends[1] and not any(sign in pattern for sign in "*?["))


def _write_name(name: str, pairs: bool) -> str:
    """Return the folded letters of the name, with a bar before each further word."""
    words = _SEPARATORS.split(_HUMP.sub("_", name).strip("_-./: "))
    return "|".join(_skeleton(word, pairs) for word in words if word)


def _skeleton(letters: str, pairs: bool) -> str:
    plain = unicodedata.normalize("NFKC", letters).casefold().translate(_LIKE)
    return plain.translate(_PAIRS) if pairs else plain


@lru_cache(maxsize=4096)
def _build_pattern(pattern: str, pairs: bool) -> re.Pattern[str]:
    """Return a pattern over folded names that ignores separators but beside wildcards; atomic parts bound its time."""
    stretches = [""]
    before = ""
    for kind, part in _split(pattern):
        letters = _skeleton(part, pairs) if kind == "letter" else ""
        if kind == "star":
            stretches[-1] += _keep_whole(before, "(?!", _SECOND_HALVES) if pairs else ""
            stretches.append("")
        elif letters and pairs and not stretches[-1]:
            whole = _keep_whole(letters[0], "(?<!", _FIRST_HALVES) if len(stretches) > 1 else ""
            stretches[-1] += whole + _write_letters(letters)
        else:
            stretches[-1] += _write_part(kind, part, pairs)
        before = letters[-1:]
    first, *rest = stretches
    stars = [*(f"(?>.*?{stretch})" for stretch in rest[:-1]), *(f".*{stretch}" for stretch in rest[-1:])]
    return re.compile(first + "".join(stars))


def _keep_whole(letter: str, look: str, halves: dict[str, str]) -> str:
    """Return an expression that lets no wildcard take one half of a letter: `inc*` is not like `index`."""
    return f"{look}{halves[letter]})" if letter in halves else ""


def _split(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a pattern, with separators only beside a wildcard."""
    parts = [(str(match.lastgroup), match.group()) for match in _PARTS.finditer(pattern)]
    for place, (kind, part) in enumerate(parts):
        beside = {other for other, _ in (*parts[max(0, place - 1) : place], *parts[place + 1 : place + 2])}
        if kind != "gap" or beside - {"letter"}:
            yield kind, part


def _write_part(kind: str, part: str, pairs: bool) -> str:
    if kind == "gap":
        return r"\|"
    if kind == "one":
        return r"\|?[^|]"
    if kind == "range":
        letters = {_skeleton(sign, pairs) for sign in _ALL if fnmatchcase(sign, part) and sign.isalnum()}
        written = "|".join(_write_letters(letter) for letter in sorted(letters))
        return f"(?:{written})" if written else "(?!)"
    return _write_letters(_skeleton(part, pairs))


def _write_letters(letters: str) -> str:
    return "".join(rf"\|?{re.escape(letter)}" for letter in letters)


class ToolDefinition(Immutable):
    """A tool as its agent declares it. Every approval is bound to its digest, so a redefined tool is noticed."""

    name: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=20_000)
    parameters: dict[str, JsonValue] = Field(default={"type": "object", "properties": {}})
    idempotent: bool = False
    previews: bool = Field(False, exclude_if=is_empty)
    reversible: bool = Field(False, exclude_if=is_empty)

    @property
    def digest(self) -> str:
        """The SHA-256 of the canonical definition."""
        return self.traits.digest

    @property
    def traits(self) -> "ToolTraits":
        """What follows from the definition alone; computed once for equal definitions."""
        return _find_traits(self.model_dump_json())

    @property
    def properties(self) -> Mapping[str, JsonValue]:
        """The schemas of the arguments; none when the parameters list none."""
        properties = self.parameters.get("properties")
        return properties if isinstance(properties, dict) else {}


class ToolTraits(NamedTuple):
    """The digest of a tool's definition, and the paths of its secret arguments.

    Without `has_secrets`, the definition names no secret anywhere.
    """

    digest: str
    secrets: tuple[str, ...]
    has_secrets: bool


@lru_cache(maxsize=4096)
def _find_traits(definition: str) -> ToolTraits:
    parsed = parse_json(definition)
    parameters = parsed.get("parameters") if isinstance(parsed, dict) else None
    schema = parameters if isinstance(parameters, dict) else {}
    return ToolTraits(digest_json(parsed), list_secret_paths(schema), has_secrets(schema))


def define(
    name: str,
    description: str,
    parameters: JsonObject,
    idempotent: bool,
    previews: bool = False,
    reversible: bool = False,
) -> ToolDefinition:
    """Return a tool definition; raises `InvalidInput` when a part is invalid."""
    check_tool_name(name)
    try:
        return ToolDefinition(
            name=name,
            description=description,
            parameters=parameters,
            idempotent=idempotent,
            previews=previews,
            reversible=reversible,
        )
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise InvalidInput(f"The definition of tool {name[:80]!r} is invalid: {faults}.") from error


class ToolCall(Immutable):
    """One call of a model turn. The id comes from the model and may be empty or repeated; the index is unique.

    `subagent` is the sub-agent that makes the call, "" for the agent itself, and None when unknown.
    """

    call_id: str = Field(max_length=200)
    index: int = Field(ge=0)
    name: str = Field(min_length=1, max_length=200)
    args: dict[str, Any]
    subagent: str | None = None


class ToolResult(Immutable):
    """How one call ended. `latency_ms` is None for a call that never ran."""

    call_id: str
    tool_name: str
    success: bool
    output: JsonValue = None
    error: str | None = None
    latency_ms: float | None = None

    @property
    def tool_message(self) -> dict[str, JsonValue]:
        """The result as the model receives it, in the shape of the tool-call lifecycle (seed 003)."""
        if self.success:
            return {"success": True, "output": self.output, "tool_call_id": self.call_id}
        return {"success": False, "error": self.error, "tool_call_id": self.call_id}
