"""JSON for readers: a one-line summary, a table of paths and values, and the full text."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, canonical_json

_quote = json.encoder.encode_basestring
"""Quotes a text as canonical JSON does, but faster; a page has thousands of texts."""

SUMMARY_PAIRS = 5
SUMMARY_VALUE_CHARS = 42
SUMMARY_PATH_CHARS = 32


@dataclass(frozen=True)
class Leaf:
    """One value and its path; a literal is a number, boolean, null or empty value. Only a summary cuts a leaf short.

    `currency` is that of an amount, where a key beside it names one.
    """

    path: str
    text: str
    literal: bool
    cut: bool = False
    currency: str = ""


@dataclass(frozen=True)
class Summary:
    """The first leaves, and the number of omitted ones with the length of their texts."""

    shown: tuple[Leaf, ...]
    hidden_values: int
    hidden_chars: int = 0


def list_values(value: JsonValue) -> list[Leaf]:
    """Return every leaf in order, with paths such as `items[0].name`."""
    return list(_walk(value, ""))


def list_texts(value: JsonValue) -> Iterator[str]:
    """Yield every text and every key as stored, without the escapes of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from list_texts(child)
    elif isinstance(value, dict):
        for key, child in value.items():
            yield key
            yield from list_texts(child)


def summarize(args: JsonObject) -> Summary:
    """Return a summary of the arguments that fits on one line."""
    values = list_values(args) if args else []
    shown = tuple(_shorten(leaf) for leaf in values[:SUMMARY_PAIRS])
    hidden = values[SUMMARY_PAIRS:]
    return Summary(shown, len(hidden), sum(len(leaf.text) for leaf in hidden))


def count_changes(before: JsonObject, after: JsonObject) -> int:
    """Return how many values differ between two objects, with those that only one of them has."""
    old, new = ({leaf.path: leaf.text for leaf in list_values(args)} if args else {} for args in (before, after))
    return sum(old.get(path) != new.get(path) for path in old.keys() | new.keys())


def write_pretty(value: JsonValue, indent: str = "") -> str:
    """Return indented JSON; scalars equal those of the digested canonical form."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        rows = [f"{deeper}{_scalar(key)}: {write_pretty(child, deeper)}" for key, child in value.items()]
    elif isinstance(value, list) and value:
        rows = [f"{deeper}{write_pretty(child, deeper)}" for child in value]
    else:
        return _scalar(value)
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n" + ",\n".join(rows) + f"\n{indent}{end}"


def write_leaf(value: JsonValue) -> str:
    """Return a text unquoted, and any other value as JSON."""
    return next(iter(_walk(value, ""))).text if not isinstance(value, dict | list) else write_pretty(value)


def _walk(value: JsonValue, path: str) -> Iterator[Leaf]:
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _walk(child, _below(path, key))
    elif isinstance(value, list) and value:
        for place, child in enumerate(value):
            yield from _walk(child, f"{path}[{place}]")
    elif isinstance(value, str) and not _is_ambiguous(value):
        yield Leaf(path, value, literal=False)
    else:
        yield Leaf(path, _scalar(value), literal=not isinstance(value, str))


def _below(path: str, key: str) -> str:
    """Return the path of a key; an ambiguous key is quoted."""
    if write_key(key) != key or any(sign in key for sign in ".[]"):
        return f"{path}[{_scalar(key)}]"
    return f"{path}.{key}" if path else key


def write_key(key: str) -> str:
    """Return a key, quoted where it is ambiguous: `to`, `"to "`, `"to\\n"`."""
    return _scalar(key) if not key or key != key.strip() or '"' in key or not key.isprintable() else key


def _is_ambiguous(text: str) -> bool:
    body = text.rstrip("\r\n")  # line breaks at the end have their sign
    if body != body.strip() or not body or body[0] in "\"'{[":
        return True
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _scalar(value: JsonValue) -> str:
    return _quote(value) if isinstance(value, str) else canonical_json(value).decode()


def _shorten(leaf: Leaf) -> Leaf:
    path, text = leaf.path[:SUMMARY_PATH_CHARS], leaf.text[:SUMMARY_VALUE_CHARS]
    return leaf if (path, text) == (leaf.path, leaf.text) else Leaf(path, text, leaf.literal, cut=True)
