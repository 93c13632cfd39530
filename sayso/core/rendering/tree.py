"""The fallback: all values in the order of the call, under the tool's name."""

from sayso.core.rendering.views import Call, Sketch, normalize, read_text, shorten

_HEADLINE_NAMES = (
    "to",
    "recipient",
    "recipients",
    "email",
    "url",
    "host",
    "path",
    "file",
    "filepath",
    "amount",
    "account",
)
"""Arguments whose value names an unknown call best, the best first."""


def render(call: Call) -> Sketch:
    """Return the values as they are; the headline adds the first of the known names to the tool's name."""
    for name in _HEADLINE_NAMES:
        for leaf in call.find(name)[:1]:
            key = next(arg for arg in call.args if normalize(arg) == name)
            return Sketch(f"{call.tool}: {key} {shorten(read_text(leaf))}")
    return Sketch(call.tool)
