"""What conditions read beyond CEL: named lists and constants, and shorthands that Sayso computes from a call.

Here are the lists and constants by name, the checks that texts pass first, and the error for what no call yields.
"""

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field, JsonValue

from sayso.core.canonical_json import digest_json
from sayso.errors import InvalidInput


class Uncomputable(InvalidInput):
    """The value cannot be computed from this argument, so the rule that reads it cannot be evaluated."""


_REFUSED = ("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Cn", "Co")  # control characters, invisible ones and unusual blanks


def read_text(value: JsonValue, most: int) -> str:
    """Return a text of at most `most` characters that programs and people read alike; raises `Uncomputable`."""
    if not isinstance(value, str):
        raise Uncomputable(f"it must be a text, not {type(value).__name__}")
    if len(value) > most:
        raise Uncomputable(f"it has {len(value)} characters; the limit is {most}")
    for sign in "" if value.isascii() and value.isprintable() else value:
        if unicodedata.category(sign) in _REFUSED and sign not in " \n\t":
            raise Uncomputable(f"it has the character U+{ord(sign):04X}, which programs read differently")
    return value


MOST_ENTRY_CHARS = 1_000

Scalar = Annotated[str, Field(max_length=MOST_ENTRY_CHARS)] | bool | int | float  # an entry of a list, or a constant
Stamp = tuple[int, int, int] | None  # the time of change, size and inode of a file; None for one that cannot be read


class Names(NamedTuple):
    """The lists and constants that conditions may read."""

    lists: Mapping[str, tuple[Scalar, ...]]
    constants: Mapping[str, Scalar]

    def digest(self) -> dict[str, Any]:
        """Return what the version of the rules covers of the names; nothing without any."""
        lists = {name: digest_json(entries) for name, entries in self.lists.items()}
        return ({"lists": lists} if lists else {}) | ({"constants": dict(self.constants)} if self.constants else {})


NO_NAMES = Names({}, {})
