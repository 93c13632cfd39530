"""Sentences that warn of characters that nobody sees, or that look like others."""

from pydantic import JsonValue

from sayso.text.foreign import count_lookalikes
from sayso.text.language import _, ngettext
from sayso.text.summaries import list_texts
from sayso.text.suspicions import count_hidden


def describe_characters(value: JsonValue) -> list[str]:
    """Return a warning for the hidden and one for the look-alike characters of all texts and keys, if there are any."""
    return [sentence for sentence, _label in warn_of_characters(value)]


def warn_of_characters(value: JsonValue) -> list[tuple[str, str]]:
    """Return the same warnings, each with its short form."""
    texts = list(list_texts(value))
    hidden = _describe_hidden(sum(map(count_hidden, texts)))
    alike = _describe_alike(sum(map(count_lookalikes, texts)))
    return [*((sentence, name_hidden()) for sentence in hidden), *((sentence, name_alike()) for sentence in alike)]


def name_hidden() -> str:
    """Return the short form of a warning of hidden characters."""
    return _("hidden characters")


def name_alike() -> str:
    """Return the short form of a warning of look-alike characters."""
    return _("look-alike letters")


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
