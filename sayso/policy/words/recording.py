"""The form in which computed values are recorded and shown: short, and without secrets."""

import re

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.text.redaction import MASK

MOST_SHOWN = 20
MOST_SHOWN_CHARS = 200
"""The limits of entries, and of characters in each text, that are recorded of one value."""

_ARGUMENT = re.compile(r"\w+\(args\.?([^.\[,)]*)")


def shorten(value: JsonValue) -> JsonValue:
    """Return a value with its long texts and lists cut."""
    if isinstance(value, dict):
        return {name: shorten(part) for name, part in value.items()}
    if isinstance(value, list):
        more = [f"… {len(value) - MOST_SHOWN} more"] if len(value) > MOST_SHOWN else []
        return [*(shorten(entry) for entry in value[:MOST_SHOWN]), *more]
    return f"{value[:MOST_SHOWN_CHARS]}…" if isinstance(value, str) and len(value) > MOST_SHOWN_CHARS else value


def mask_computed(computed: JsonObject, args: JsonObject, redacted: JsonObject) -> JsonObject:
    """Return computed values by label, with the texts masked whose argument differs after its secrets are masked."""
    return {label: _mask(value) if _reads_secret(label, args, redacted) else value for label, value in computed.items()}


def _reads_secret(label: str, args: JsonObject, redacted: JsonObject) -> bool:
    match = _ARGUMENT.match(label)
    if match is None or args == redacted:
        return False  # it reads the context, which has no secrets, or nothing is secret
    return match[1] not in args or args[match[1]] != redacted[match[1]]


def _mask(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _mask(part) for name, part in value.items()}
    if isinstance(value, list):
        return [MASK] if value else []
    return MASK if isinstance(value, str) else value
