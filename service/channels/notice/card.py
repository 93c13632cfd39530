"""Cards as short texts with a link, without arguments: the service behind may read, cut or format them."""

from collections.abc import Iterator

from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.language import count_units, cut
from service.channels.base import Rendered, allowed_actions
from service.channels.cards import Card

MESSAGE_UNITS = 1800
"""Discord takes 2,000 UTF-16 units, with the title."""

TITLE_CHARS = 120
LINE_CHARS = 120
CLOSING_CHARS = 400

_PLAIN = str.maketrans({"@": "＠", "<": "‹", ">": "›", "[": "［", "]": "］", "(": "（", ")": "）", "`": "ˋ", "*": "∗"})
"""Characters with which a text could mention people, form links or other markup."""


def render_card(card: Card) -> Rendered:
    """Return the notice: a title and a text."""
    lines = list(_write_lines(card))
    link = f"Open: {card.link}"
    while count_units("\n".join([*lines, link])) > MESSAGE_UNITS:
        lines.pop()
    title = _cut(f"{card.agent} asks: {card.tool}", TITLE_CHARS)
    text = "\n".join([*lines, link])
    actions = allowed_actions(card, complete=False, decides=frozenset())
    return Rendered({"title": title, "body": text}, f"{title}\n{text}", complete=False, actions=actions)


def _write_lines(card: Card) -> Iterator[str]:
    if card.closing:
        yield _cut(f"Closed: {card.closing}", CLOSING_CHARS)
    if card.urgent and card.live:
        yield "Urgent"
    yield from (_cut(f"Warning: {warning}", LINE_CHARS) for warning in card.warnings)
    yield from (_cut(f"{label}: {text}", LINE_CHARS) for label, text in card.facts)
    if card.claims:
        yield "; ".join([UNCHECKED, *(_cut(f"{label}: {text}", LINE_CHARS) for label, text in card.claims)])


def _cut(text: str, most: int) -> str:
    """Return the text on one line without markup, with `…` where it was cut."""
    return cut(" ".join(text.split()).translate(_PLAIN), most)
