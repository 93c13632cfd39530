"""Names of hosts in Punycode (RFC 3492), as browsers show them."""

import re
from collections.abc import Iterator

_LABEL = re.compile(r"(?<![A-Za-z0-9-])xn--[A-Za-z0-9-]{1,59}(?![A-Za-z0-9-])", re.IGNORECASE)


def decode_labels(text: str) -> Iterator[tuple[str, str]]:
    """Yield each label of a host's name that is in Punycode, and what it stands for; none that cannot be decoded."""
    for found in _LABEL.finditer(text):
        label = found[0]
        try:
            yield label, label[4:].encode().decode("punycode")
        except UnicodeError:
            continue
