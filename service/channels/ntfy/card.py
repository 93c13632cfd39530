"""Cards as notifications of ntfy. A broker can read them, so only an own broker is sent facts and arguments."""

from collections.abc import Iterator
from typing import Any

from sayso.core.text.invisible import UNCHECKED
from service.channels.base import Rendered, allowed_actions
from service.channels.cards import Card

MESSAGE_BYTES = 4096
"""A longer message becomes an attachment."""

TITLE_BYTES = 250
CLOSING_BYTES = 800
LINE_BYTES = 200
URGENT = 5
NORMAL = 3

_PUBLIC_FACTS = frozenset({"Decide before"})


def render_card(card: Card, *, own_broker: bool) -> Rendered:
    """Return the notification, with the link as its only action. Arguments that do not fit are omitted as a whole."""
    lines = list(_write_lines(card, own_broker=own_broker))
    text = "\n".join([*lines, "Arguments, exactly what will run:", card.args_text])
    fits = own_broker and count_bytes(text) <= MESSAGE_BYTES
    if not fits:
        text = cut("\n".join([*lines, "Open the item to read its arguments."]), MESSAGE_BYTES)
    title = cut(f"{'Urgent: ' if card.urgent and card.live else ''}{card.agent} asks: {card.tool}", TITLE_BYTES)
    body: dict[str, Any] = {
        "title": title.replace("\n", "↵"),
        "message": text,
        "priority": URGENT if card.urgent and card.live else NORMAL,
        "click": card.link,
        "actions": [{"action": "view", "label": "Open", "url": card.link}],
    }
    complete = fits and not card.masked
    actions = allowed_actions(card, complete=complete, decides=frozenset())
    return Rendered(body, f"{body['title']}\n{text}", complete, actions)


def count_bytes(text: str) -> int:
    """Return the length as ntfy counts it."""
    return len(text.encode("utf-8", "replace"))


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` bytes, with `…` where it was cut."""
    if count_bytes(text) <= most:
        return text
    return f"{text.encode('utf-8', 'replace')[: most - 3].decode('utf-8', 'ignore')}…"


def _write_lines(card: Card, *, own_broker: bool) -> Iterator[str]:
    if card.closing:
        yield cut(f"Closed: {card.closing if own_broker else card.ended}", CLOSING_BYTES)
    if own_broker:
        yield from (cut(f"Warning: {warning}", LINE_BYTES) for warning in card.warnings)
    for label, text in card.facts:
        if own_broker or label in _PUBLIC_FACTS:
            yield cut(f"{label}: {text}", LINE_BYTES)
    if own_broker and card.claims:
        yield UNCHECKED
        yield from (cut(f"{label}: {text}", LINE_BYTES) for label, text in card.claims)
