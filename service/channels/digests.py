"""Digests: the open items of one person in one message, each with its link and without buttons."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.channels.cards import Card

FRAME_CHARS = 200
"""The room that a message needs for the title and the rest of a digest."""


class Entry(NamedTuple):
    """One item of a digest."""

    text: str
    link: str


@dataclass(frozen=True)
class Digest:
    """A digest; `rest` says how many items do not fit, and is empty if all do."""

    title: str
    entries: tuple[Entry, ...]
    rest: str


def build_digest(cards: Sequence[Card], most: int, size: Callable[[Entry], int]) -> Digest:
    """Return the digest of open items, the most pressing first: as many as fit into `most` by their `size`."""
    count, entries = len(cards), list[Entry]()
    for card in sorted(cards, key=lambda card: card.deadline):
        entry = Entry(f"{card.agent} asks: {card.headline}, before {card.deadline}", card.link)
        most -= size(entry)
        if most < 0:
            break
        entries.append(entry)
    title = f"{count} items wait for a decision" if count > 1 else "1 item waits for a decision"
    rest = count - len(entries)
    return Digest(
        title, tuple(entries), f"And {rest} more, which do not fit here: the inbox lists them." if rest else ""
    )
