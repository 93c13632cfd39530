"""Scripts speak the language of the page: every sentence in them is a message of the catalogue."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.jslexer import Token, tokenize, unquote_string

from service.edge.http.assets import STATIC

SCRIPTS = sorted(STATIC.glob("*.js"))

# Names that browsers define, and names of keys.
_NAMES = {"AltGraph", "DOMContentLoaded", "Enter", "Escape", "Esc", "Etc/UTC", "Notification", "PushManager", "Sayso"}
_NAMES |= {"InvalidStateError", "Shift", "Control", "Alt", "Meta", "ArrowDown", "ArrowUp"}
_NAMED = re.compile(r"X-[A-Za-z-]+|(Ctrl|Shift)\+.+")
_WORDS = re.compile(r"(^|\s)[A-Z][a-z]|^[0-9]+ [a-z]|\} ?[a-z]{3,}$|\} [a-z]{2,} ")
_PLACE = re.compile(r"\$\{[^}]*\}")


def find_sentences(script: str) -> Iterator[str]:
    """Yield the texts of a script that people would read in English whatever the page's language."""
    before: list[Token] = []
    for token in tokenize(script, jsx=False):
        if token.type in ("string", "template_string") and not _is_message(before):
            text = unquote_string(token.value)
            shown = _PLACE.sub("}", text) if token.type == "template_string" else text
            hides_message = token.type == "template_string" and re.search(r"\b(_|ngettext)\(", text)
            named = text in _NAMES or _NAMED.fullmatch(text)
            if hides_message or (not named and _WORDS.search(shown) and not re.search(r"[\[#/]", shown)):
                yield text
        if token.type != "linecomment":
            before = [*before[-3:], token]


def _is_message(before: list[Token]) -> bool:
    """Return whether a text is the first argument of `_`, or one of the first two of `ngettext`."""
    values = [one.value for one in before]
    second = len(values) == 4 and values[:2] == ["ngettext", "("] and values[3] == ","
    return values[-2:] in (["_", "("], ["ngettext", "("]) or second


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_script_has_no_english_sentence(path: Path) -> None:
    assert list(find_sentences(path.read_text())) == []


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ('say("Next row");', ["Next row"]),
        ("say(`${count} rows`);", ["${count} rows"]),
        ('say("Copied");', ["Copied"]),
        ('say(`${_("Copied")} `);', ['${_("Copied")} ']),
        ('say(_("Next row"), ngettext("1 Row", "Many rows", 2));', []),
        ('one("main form.push > button"); key === "Enter";', []),
    ],
)
def test_find_sentences_passes_messages_and_selectors(script: str, found: list[str]) -> None:
    assert list(find_sentences(script)) == found
