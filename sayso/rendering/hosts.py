"""Checks of names of hosts that look like others when they are decoded."""

from collections.abc import Iterator

from sayso.canonical_json import JsonObject
from sayso.rendering.views import SEVERE, Flag
from sayso.text.invisible import write_signs
from sayso.text.language import _
from sayso.text.lookalikes import find_lookalikes
from sayso.text.punycode import decode_labels
from sayso.text.summaries import list_texts

_MOST = 5


def check_hosts(args: JsonObject) -> Iterator[Flag]:
    """Yield a flag for each name in Punycode whose letters look like others, at most five."""
    pairs = dict.fromkeys(pair for text in list_texts(args) for pair in decode_labels(text))
    alike = [(label, name) for label, name in pairs if find_lookalikes(name)]
    sentence = _("The name %(label)s stands for %(name)s, whose letters are not what they look like.")
    for label, name in alike[:_MOST]:
        yield Flag(sentence % {"label": label, "name": write_signs(name)}, SEVERE, _("look-alike letters"))
