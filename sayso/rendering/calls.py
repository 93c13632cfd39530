"""A call as renderers read it: its tool's name, its schema and its values by path."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sayso.canonical_json import JsonObject
from sayso.text.language import _
from sayso.text.lengths import cut
from sayso.text.summaries import Leaf, list_values

MAX_PARSED_CHARS = 20_000
"""Longer texts are shown in full, but not parsed: the flag says so."""

_SHORT_CHARS = 60
_SEPARATORS = re.compile(r"[^a-z0-9]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True)
class Call:
    """A tool call to render; without a schema, names and values decide alone."""

    tool: str
    args: JsonObject
    schema: JsonObject = field(default_factory=dict)

    @cached_property
    def leaves(self) -> dict[str, Leaf]:
        """All values by path."""
        return {leaf.path: leaf for leaf in list_values(self.args)} if self.args else {}

    @cached_property
    def _keys(self) -> dict[str, list[str]]:
        keys: dict[str, list[str]] = {}
        for key in self.args:
            keys.setdefault(normalize(key), []).append(key)
        return keys

    @cached_property
    def tool_words(self) -> frozenset[str]:
        """The words in the tool's name, in lower case."""
        return frozenset(map(str.lower, _WORD.findall(self.tool)))

    @property
    def title(self) -> str:
        """The tool's name as words: `refund_payment` reads `Refund payment`."""
        words = _WORD.findall(self.tool) if self.tool.isascii() else []
        return " ".join(words).capitalize() if words else self.tool

    def find(self, *names: str) -> list[Leaf]:
        """Return the values of the arguments with these names, and all below them; `fileName` counts as `filename`."""
        keys = [key for name in names for key in self._keys.get(name, ())]
        return [leaf for key in keys for leaf in list_values({key: self.args[key]})]

    def find_texts(self, *names: str) -> list[Leaf]:
        """Return those values that are texts and not blank."""
        return [leaf for leaf in self.find(*names) if not leaf.literal and read_text(leaf).strip()]


def normalize(key: str) -> str:
    """Return an argument's name in lower case without separators."""
    return _SEPARATORS.sub("", key.lower())


def read_text(leaf: Leaf) -> str:
    """Return a text as stored; a leaf quotes ambiguous texts, such as those with outer blanks."""
    return str(json.loads(leaf.text, strict=False)) if not leaf.literal and leaf.text.startswith('"') else leaf.text


def name_several(names: Sequence[str]) -> str:
    """Return the first of several names, and how many more there are."""
    if not names[1:]:
        return shorten(names[0])
    return _("%(first)s and %(count)s more", first=shorten(names[0]), count=len(names) - 1)


def shorten(text: str, most: int = _SHORT_CHARS) -> str:
    """Return a text on one line for a headline or a flag."""
    return cut(" ".join(text[: 4 * most].split()), most)
