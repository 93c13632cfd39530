"""Checks of names of hosts in Punycode (RFC 3492) that look like others when browsers show them."""

import re
from collections.abc import Iterator

from sayso.canonical_json import JsonObject
from sayso.rendering.views import SEVERE, Flag
from sayso.text.invisible import write_signs
from sayso.text.language import _
from sayso.text.lookalikes import find_lookalikes
from sayso.text.summaries import list_texts

_MOST = 5
_LABEL = re.compile(r"(?<![A-Za-z0-9-])xn--[A-Za-z0-9-]{1,59}(?![A-Za-z0-9-])", re.IGNORECASE)


def check_hosts(args: JsonObject) -> Iterator[Flag]:
    """Yield a flag for each name in Punycode whose letters look like others, at most five."""
    pairs = dict.fromkeys(pair for text in list_texts(args) for pair in _decode_labels(text))
    alike = [(label, name) for label, name in pairs if find_lookalikes(name)]
    sentence = _("The name %(label)s stands for %(name)s, whose letters are not what they look like.")
    for label, name in alike[:_MOST]:
        yield Flag(sentence % {"label": label, "name": write_signs(name)}, SEVERE, _("look-alike letters"))


def _decode_labels(text: str) -> Iterator[tuple[str, str]]:
    """Yield each label of a host's name that is in Punycode, and what it stands for; none that cannot be decoded."""
    for match in _LABEL.finditer(text):
        label = match[0]
        try:
            yield label, label[4:].encode().decode("punycode")
        except UnicodeError:
            continue
