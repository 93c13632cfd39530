"""Masking of secret arguments, for every text that leaves the service.

A value is secret if its schema says so (`writeOnly`, `format: password`, or `x-secret`), or if a rule lists its path in
`secrets`. Paths are written as `token`, `login.password` or `items[].key`; `*` stands for every name.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json

MASK = "[secret]"

PATH_PATTERN = re.compile(r"(\*|[A-Za-z0-9_$-]+)(\[\])*(\.(\*|[A-Za-z0-9_$-]+)(\[\])*)*")
"""The form of a path in a rule's `secrets`."""

_MOST_PARTS = 2_000
_NO_SECRETS: frozenset[str] = frozenset()
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_$-]+")
_SHORTEST_SCRUBBED = 4  # shorter secrets are not searched for in other texts: they would match by chance


class Redacted(NamedTuple):
    """Arguments without their secrets, and the texts of the secrets that were replaced."""

    args: JsonObject
    secrets: frozenset[str]

    @property
    def masked(self) -> bool:
        return bool(self.secrets)

    def scrub(self, text: str) -> str:
        """Return another text with the secrets masked that are quoted in it, also escaped as in JSON or a URL."""
        return _scrub_text(text, _list_spellings(self.secrets))

    def scrub_json(self, value: JsonValue) -> JsonValue:
        """Return other JSON with the secrets masked that its texts quote."""
        return _scrub(value, _list_spellings(self.secrets)) if self.masked else value

    def scrub_object(self, value: JsonObject) -> JsonObject:
        """Return another JSON object with the secrets masked that its texts quote."""
        return _scrub_object(value, _list_spellings(self.secrets)) if self.masked else value


def redact(args: JsonObject, schema: JsonObject | None, paths: Sequence[str] = ()) -> Redacted:
    """Return the arguments with every secret value replaced by `MASK`, also where another value quotes it."""
    if not (schema or paths):
        return Redacted(args, _NO_SECRETS)
    root = schema or {}
    masked = _mask_object(args, [root], root, [tuple(_split(path)) for path in paths])
    redacted = Redacted(masked, frozenset(_list_masked(args, masked)))
    return Redacted(redacted.scrub_object(masked), redacted.secrets)


def list_secret_paths(schema: JsonObject, path: str = "") -> tuple[str, ...]:
    """Return the paths that a schema of all arguments, or of the one at `path`, marks as secret, as rules write them.

    A part that contains itself is secret as a whole, and so is everything in a schema with too many parts.
    """
    if not has_secrets(schema):
        return ()
    finder = _PathFinder(schema)
    paths = tuple(dict.fromkeys(filter(None, finder.find([schema], path, frozenset()))))
    return (path or "*",) if finder.visited > _MOST_PARTS else paths


@dataclass
class _PathFinder:
    root: JsonObject
    visited: int = 0

    def find(self, schemas: Sequence[JsonObject], path: str, above: frozenset[int]) -> Iterator[str]:
        """Yield the secret paths at and below a part; `above` are the ids of the schemas around it."""
        self.visited += 1
        expanded = _expand(self.root, schemas)
        repeated = any(id(schema) in above and schema.get("properties", schema.get("items")) for schema in expanded)
        if repeated or any(map(is_secret, expanded)):
            yield path
            return
        if self.visited > _MOST_PARTS:
            return
        inside = above.union(map(id, expanded))
        for name in dict.fromkeys(_list_names(expanded)):
            if inner := _below(self.root, expanded, name):
                step = name if _PLAIN_NAME.fullmatch(name) else "*"
                yield from self.find(inner, f"{path}.{step}" if path else step, inside)
        prefixes = (schema.get("prefixItems") for schema in expanded)
        places = range(max((len(prefix) for prefix in prefixes if isinstance(prefix, list)), default=0) + 1)
        items = [schema for place in places for schema in _items(self.root, expanded, place)]
        if items and path:
            yield from self.find(items, f"{path}[]", inside)


def _list_names(schemas: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the names of all properties, and `*` where names are open."""
    for schema in schemas:
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        if isinstance(schema.get("patternProperties"), dict) or isinstance(schema.get("additionalProperties"), dict):
            yield "*"


def has_secrets(value: JsonValue) -> bool:
    """Return whether any part of a schema marks its value as secret."""
    if isinstance(value, dict):
        return is_secret(value) or any(map(has_secrets, value.values()))
    return isinstance(value, list) and any(map(has_secrets, value))


def _list_spellings(secrets: Iterable[str]) -> dict[str, None]:
    """Return how texts quote the secrets, each as it is and escaped, longest secret first."""
    long = (secret for secret in secrets if len(secret) >= _SHORTEST_SCRUBBED)
    return dict.fromkeys(spelling for secret in sorted(long, key=len, reverse=True) for spelling in _spell(secret))


def _spell(secret: str) -> Iterator[str]:
    yield secret
    if not (secret.isascii() and secret.isalnum()):
        yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
        yield from (quote(secret, safe=""), quote(secret), quote_plus(secret))


def _scrub_object(args: JsonObject, spellings: dict[str, None]) -> JsonObject:
    return {name: _scrub(value, spellings) for name, value in args.items()}


def _scrub(value: JsonValue, spellings: dict[str, None]) -> JsonValue:
    if isinstance(value, str):
        return _scrub_text(value, spellings)
    if isinstance(value, list):
        return [_scrub(part, spellings) for part in value]
    if isinstance(value, dict):
        return _scrub_object(value, spellings)
    return MASK if any(number in spellings for number in _list_leaves(value)) else value


def _scrub_text(text: str, spellings: dict[str, None]) -> str:
    for spelling in spellings:
        text = text.replace(spelling, MASK)
    return text


def _list_masked(value: JsonValue, masked: JsonValue) -> Iterator[str]:
    """Yield the texts and numbers that were masked, and an empty text for a value without any."""
    if masked == MASK and value != MASK:
        yield from _list_leaves(value)
        yield ""
    elif isinstance(value, dict) and isinstance(masked, dict):
        for name, part in value.items():
            yield from _list_masked(part, masked[name])
    elif isinstance(value, list) and isinstance(masked, list):
        for part, other in zip(value, masked, strict=True):
            yield from _list_masked(part, other)


def _list_leaves(value: JsonValue) -> Iterator[str]:
    """Yield the texts of a value as they are, and its numbers as canonical JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _list_leaves(part)
    elif value is not None and not isinstance(value, bool):
        yield canonical_json(value).decode()


def _split(path: str) -> Iterator[str]:
    for name in path.removeprefix("args.").split("."):
        bare = name.rstrip("[]")
        yield bare
        yield from ["[]"] * ((len(name) - len(bare)) // 2)


def _step(patterns: Sequence[tuple[str, ...]], name: str) -> list[tuple[str, ...]]:
    return [path[1:] for path in patterns if path and (path[0] == name or (path[0] == "*" and name != "[]"))]


def _mask(
    value: JsonValue, schemas: Sequence[JsonObject], root: JsonObject, patterns: Sequence[tuple[str, ...]]
) -> JsonValue:
    if () in patterns or any(map(is_secret, schemas)):
        return MASK
    if isinstance(value, dict):
        return _mask_object(value, schemas, root, patterns)
    if isinstance(value, list):
        inner = [(_items(root, schemas, place), _step(patterns, "[]")) for place in range(len(value))]
        return [_mask(part, below, root, rest) for part, (below, rest) in zip(value, inner, strict=True)]
    return value


def _mask_object(
    value: JsonObject, schemas: Sequence[JsonObject], root: JsonObject, patterns: Sequence[tuple[str, ...]]
) -> JsonObject:
    return {name: _mask(part, _below(root, schemas, name), root, _step(patterns, name)) for name, part in value.items()}


def is_secret(schema: JsonObject) -> bool:
    """Whether a schema marks its value as secret."""
    return schema.get("writeOnly") is True or schema.get("format") == "password" or schema.get("x-secret") is True


def _below(root: JsonObject, schemas: Sequence[JsonObject], name: str) -> list[JsonObject]:
    """Return every schema that may describe the property; all patterns of names count, for they come from the agent."""
    parts: list[JsonObject] = []
    for schema in _expand(root, schemas):
        properties, patterns = schema.get("properties"), schema.get("patternProperties")
        named = properties.get(name) if isinstance(properties, dict) else None
        matching = patterns.values() if isinstance(patterns, dict) else ()
        parts += [part for part in (named, *matching, schema.get("additionalProperties")) if isinstance(part, dict)]
    return _expand(root, parts)


def _items(root: JsonObject, schemas: Sequence[JsonObject], place: int) -> list[JsonObject]:
    parts: list[JsonObject] = []
    for schema in _expand(root, schemas):
        prefix = schema.get("prefixItems")
        first = prefix[place] if isinstance(prefix, list) and place < len(prefix) else schema.get("items")
        parts += [first] if isinstance(first, dict) else []
    return _expand(root, parts)


def _expand(root: JsonObject, schemas: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the schemas with all those that they refer to or combine, each once."""
    by_id: dict[int, JsonObject] = {}
    remaining = [*schemas]
    while remaining:
        schema = remaining.pop()
        if id(schema) in by_id:
            continue
        by_id[id(schema)] = schema
        reference = schema.get("$ref")
        inner = [_look_up(root, reference)] if isinstance(reference, str) else []
        for branch in ("allOf", "anyOf", "oneOf"):
            options = schema.get(branch)
            inner += options if isinstance(options, list) else []
        remaining += [part for part in inner if isinstance(part, dict)]
    return [*by_id.values()]


def _look_up(root: JsonObject, reference: str) -> JsonValue:
    node: JsonValue = root
    for part in reference.removeprefix("#").split("/")[1:]:
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node
