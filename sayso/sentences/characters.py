"""Sentences that warn of characters that nobody sees, or that look like others."""

from pydantic import JsonValue

from sayso.text.foreign import count_lookalikes
from sayso.text.language import ngettext
from sayso.text.summaries import list_texts
from sayso.text.suspicions import count_hidden


def describe_characters(value: JsonValue) -> list[str]:
    """Return a warning for the hidden and one for the look-alike characters of all texts and keys, if there are any."""
    texts = list(list_texts(value))
    hidden = sum(map(count_hidden, texts))
    alike = sum(count_lookalikes(text) for text in texts)
    return [*_describe_hidden(hidden), *_describe_alike(alike)]


def _describe_hidden(count: int) -> list[str]:
    if not count:
        return []
    return [
        ngettext(
            "%(num)s hidden character has no place here. A sign such as ⟨U+200B⟩ stands for it.",
            "%(num)s hidden characters have no place here. A sign such as ⟨U+200B⟩ stands for each.",
            count,
        )
    ]


def _describe_alike(count: int) -> list[str]:
    if not count:
        return []
    return [
        ngettext(
            "%(num)s character is not what it looks like. The number stands behind each, such as ⟨U+0430⟩.",
            "%(num)s characters are not what they look like. The number stands behind each, such as ⟨U+0430⟩.",
            count,
        )
    ]
