"""The text of values as pages show it, signs included, and the hash that identifies it."""

import json
from collections.abc import Sequence
from hashlib import sha256

from sayso.text.blanks import collapse

_VERSION = 2
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
