"""Values that cannot be computed from a call, and the checks that all texts pass first."""

import unicodedata

from pydantic import JsonValue

from sayso.errors import InvalidInput


class Uncomputable(InvalidInput):
    """The value cannot be computed from this argument, so the rule that reads it cannot be evaluated."""


def read_text(value: JsonValue, most: int) -> str:
    """Return a text of at most `most` characters that programs and people read alike; raises `Uncomputable`."""
    if not isinstance(value, str):
        raise Uncomputable(f"it must be a text, not {type(value).__name__}")
    if len(value) > most:
        raise Uncomputable(f"it has {len(value)} characters; the limit is {most}")
    if not value.isascii() or not value.isprintable():
        check_characters(value)
    return value


def check_characters(text: str) -> None:
    """Raise `Uncomputable` for control characters, invisible ones and unusual blanks; line ends and tabs may stay."""
    for sign in text:
        category = unicodedata.category(sign)
        if (category in ("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Cn", "Co")) and sign not in " \n\t":
            raise Uncomputable(f"it has the character U+{ord(sign):04X}, which programs read differently")
