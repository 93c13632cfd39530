"""HTTP requests: method, address, headers and body."""

import re
from urllib.parse import urlsplit

from sayso.core.rendering.views import SEVERE, Call, Flag, Mark, Place, Sketch, read_text, shorten
from sayso.core.text.language import _

_URLS = ("url", "uri", "endpoint", "href", "webhookurl")
_METHODS = ("method", "httpmethod", "verb")
_PARTS = ("params", "query", "headers", "body", "data", "json", "payload")
_WORDS = frozenset(("http", "https", "request", "requests", "fetch", "curl", "api", "webhook", "rest", "post", "get"))
_URL = re.compile(r"(https?)://([^/?#\s]+)\S*", re.IGNORECASE)


def render(call: Call) -> Sketch | None:
    """Return a request: one URL, and a method or a tool that is named after requests."""
    urls = [leaf for leaf in call.find_texts(*_URLS) if _URL.fullmatch(read_text(leaf))]
    methods = [leaf for leaf in call.find_texts(*_METHODS) if re.fullmatch("[A-Za-z]{3,10}", leaf.text)]
    if len(urls) != 1 or len(methods) > 1 or not (methods or call.tool_words & _WORDS):
        return None
    (url,) = urls
    method = methods[0].text.upper() if methods else "Request"
    address = urlsplit(read_text(url))
    texts = {leaf.path: not leaf.literal and "\n" in read_text(leaf) for leaf in call.find(*_PARTS)}
    flags = []
    if "@" in address.netloc or "\\" in address.netloc:
        sentence = _("The address hides its host behind a user name: it leads to %(host)s.", host=address.hostname)
        flags = [Flag(sentence, SEVERE, _("hidden host"))]
    return Sketch(
        headline=f"{method} {address.hostname or ''}{shorten(address.path)}",
        notable=[*(Place(leaf.path) for leaf in methods), Place(url.path, "code", mark_hosts(read_text(url)))],
        body=[Place(path, "code" if is_text else "value") for path, is_text in texts.items()],
        flags=flags,
    )


def mark_hosts(text: str) -> list[Mark]:
    """Return a mark for the host of every URL in a text."""
    return [Mark(*match.span(2), "host") for match in _URL.finditer(text)]
