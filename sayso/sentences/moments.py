"""Sentences with moments in them, which every reader sees in their own time zone."""

import re
from collections.abc import Callable
from typing import NamedTuple

_PLACE = re.compile(r"%\((\w+)\)s")


class Moment(NamedTuple):
    """A time within a sentence."""

    at_ms: int


Sentence = tuple[str | Moment, ...]


def compose(message: str, **facts: str | Moment) -> Sentence:
    """Return a translated message with its named places filled: texts, with moments between them."""
    pieces = _PLACE.split(message)
    parts: list[str | Moment] = [facts[piece] if place % 2 else piece for place, piece in enumerate(pieces)]
    return tuple(part for part in parts if part)


def write_sentence(sentence: Sentence, write: Callable[[int], str]) -> str:
    """Return the sentence with its moments written by `write`."""
    return "".join(write(part.at_ms) if isinstance(part, Moment) else part for part in sentence)
