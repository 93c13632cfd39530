"""JSON for readers: a one-line summary, a table of paths and values, and the full text with its signs and hash.

Long blank runs become one sign, such as ⟨40 blank lines⟩, so that no text can be pushed out of view.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.text.invisible import Piece, reveal

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


_FIRST_OF_JSON = frozenset("-0123456789tfnNI")
"""How numbers, true, false, null, NaN and Infinity begin."""


def _is_ambiguous(text: str) -> bool:
    body = text.rstrip("\r\n")  # line breaks at the end have their sign
    if "\n" in body and body.strip():
        return False  # neither a literal nor a quoted text has several lines
    if body != body.strip() or not body or body[0] in "\"'{[":
        return True
    if body[0] not in _FIRST_OF_JSON:
        return False
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


_BLANK = (
    "[\\0-\\x09\\x0b-\\x20\\x7f-\\xa0\\xad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f"
    "\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb"
    "\\U000e0000-\\U000e0fff]"
)
"""Every character, except the line break, that is invisible."""

_RUN = re.compile(
    rf"(?P<lines>(?:{_BLANK}*+\n){{4,}}+)"  # at least three blank lines
    r"|(?P<indent>(?:(?<=\n)|\A) {1,79}+(?! ))"  # code and JSON may be indented deeply
    rf"|(?P<blanks>{_BLANK}{{16,}}+)"
)
_COLLAPSED = re.compile(rf"{_BLANK}{{16}}|\n{_BLANK}*+\n")  # what a text has that has such a run
_PLURALS = {" ": "spaces", "\t": "tabs"}


def collapse(text: str, *, breaks: bool = True) -> list[Piece]:
    """Return the text in pieces as `reveal` does. Every long run of blanks is one piece, with a sign that counts it."""
    if _COLLAPSED.search(text) is None:
        return reveal(text, breaks=breaks)
    pieces: list[Piece] = []
    begin = 0
    for match in _RUN.finditer(text):
        if match.lastgroup == "indent":
            continue
        start, end = match.span()
        if match.lastgroup == "lines":  # keep the line breaks at both ends: the sign gets its own line
            start, end = (match[0].index("\n") + start + 1 if start else 0), end - 1
            pieces += collapse(text[begin:start], breaks=breaks)  # the previous line may end in a long run
        else:
            pieces += reveal(text[begin:start], breaks=breaks)
        pieces.append(_make_sign(text[start:end], match.lastgroup == "lines"))
        begin = end
    return pieces + reveal(text[begin:], breaks=breaks)


def _make_sign(run: str, lines: bool) -> Piece:
    signs = sorted(set(run))
    if lines:
        words = f"{run.count(chr(10)) + 1} blank lines"
    elif len(signs) > 1:
        words = f"{len(run)} blank characters"
    else:
        words = f"{len(run)} {_PLURALS.get(run[0], f'× U+{ord(run[0]):04X}')}"
    names = [f"U+{ord(sign):04X}" for sign in signs if sign != "\n"]
    return Piece(run, f"⟨{words}⟩", f"{words}{': ' if names else ''}{', '.join(names)}")


_VERSION = 3
"""Raise it with every change of signs or of the layout of rows: earlier hashes then stay what they were."""


def write_shown(text: str, *, breaks: bool = False) -> str:
    """Return the text that the templates' `text` macro puts on the page."""
    written: list[str] = []
    for piece in collapse(text, breaks=breaks):
        if piece.alike:
            written.append(piece.text + piece.sign)
        elif piece.sign:
            written.append(piece.sign + piece.text if piece.soft else piece.sign)
        else:
            written.append(piece.text)
    return "".join(written)


def hash_display(rows: Sequence[Sequence[str]]) -> str:
    """Return the version and the hash of a table of any size, given the texts of its cells as shown."""
    written = json.dumps([_VERSION, [[*row] for row in rows]], ensure_ascii=False, separators=(",", ":"))
    return f"{_VERSION}:{sha256(written.encode(errors='surrogatepass')).hexdigest()}"
