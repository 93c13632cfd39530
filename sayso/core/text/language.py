"""The language of sentences: messages of a catalogue, in English without one; and lengths as providers count them.

A message is a whole sentence with named places, such as `_("%(who)s approved", who=name)`; translators may move
them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from gettext import GNUTranslations, NullTranslations
from typing import NamedTuple


class Numbers(NamedTuple):
    """How a language writes numbers: the signs before decimals and between thousands, and where a currency stands."""

    point: str = "."
    group: str = ","
    currency_first: bool = True


class Catalogue(GNUTranslations):
    """The messages of a language, and how it writes numbers."""

    numbers = Numbers()


ENGLISH = NullTranslations()
_SPOKEN: ContextVar[NullTranslations] = ContextVar("language", default=ENGLISH)


def speak(catalogue: NullTranslations) -> None:
    """Use a catalogue for the rest of this task."""
    _SPOKEN.set(catalogue)


@contextmanager
def speaking(catalogue: NullTranslations) -> Iterator[None]:
    """Use a catalogue for the length of a block."""
    before = _SPOKEN.set(catalogue)
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def find_spoken() -> NullTranslations:
    """Return the catalogue in use."""
    return _SPOKEN.get()


def find_numbers() -> Numbers:
    """Return how the language in use writes numbers."""
    spoken = _SPOKEN.get()
    return spoken.numbers if isinstance(spoken, Catalogue) else Catalogue.numbers


def _(message: str, **facts: object) -> str:
    """Return the message in the language in use, with its named places filled."""
    text = translate(message)
    return text % facts if facts else text


def ngettext(singular: str, plural: str, count: int, **facts: object) -> str:
    """Return the form of the message for a count, which is the place `num`, too."""
    return translate_count(singular, plural, count) % {"num": count, **facts}


def mark(message: str) -> str:
    """Mark a message for the catalogue where it is defined; `_` translates it where it is shown."""
    return message


def translate(message: str) -> str:
    """Return the message in the language in use, with its places."""
    return _SPOKEN.get().gettext(message) if message else ""  # catalogues keep their header as ""


def translate_count(singular: str, plural: str, count: int) -> str:
    """Return the form of the message for a count in the language in use, with its places."""
    return _SPOKEN.get().ngettext(singular, plural, count)


def count_units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with `…` where it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
