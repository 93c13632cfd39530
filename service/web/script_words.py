"""The translations of the sentences in scripts, for `templates/static/words.js`."""

import json
from collections.abc import Iterator
from functools import cache

from babel.messages.extract import extract_from_file

from service.http.assets import STATIC
from service.web.languages import load_catalogue

Message = str | tuple[str, str]
"""A message, or its forms for one and for many."""

_KEYWORDS = {"_": None, "ngettext": (1, 2)}


@cache
def list_script_messages() -> tuple[Message, ...]:
    """Return every message of the scripts."""
    return tuple(dict.fromkeys(_extract_messages()))


@cache
def write_script_words(code: str) -> str:
    """Return the messages of the scripts with their translations as JSON; those with two forms by the first of them."""
    catalogue = load_catalogue(code)
    words: dict[str, str | list[str]] = {}
    for message in list_script_messages():
        if isinstance(message, str):
            words[message] = catalogue.gettext(message)
        else:
            words[message[0]] = [catalogue.ngettext(*message, count) for count in (1, 2)]
    return json.dumps(words, ensure_ascii=False, separators=(",", ":"))


def _extract_messages() -> Iterator[Message]:
    for path in sorted(STATIC.glob("*.js")):
        for _line, message, *_rest in extract_from_file("javascript", path, _KEYWORDS, options={"jsx": False}):
            yield message if isinstance(message, str) else (message[0], message[1])
