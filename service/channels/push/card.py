"""Cards as notifications: a headline and a link. The item's page, which requires a sign-in, shows the rest."""

import json
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import urlsplit

from pydantic import JsonValue

from sayso.core.text.language import cut
from service.channels.base import Rendered, allowed_actions
from service.channels.cards import Card
from service.channels.digests import build_digest

LARGEST_PAYLOAD_BYTES = 3_000
"""Push services take 4096 bytes with the encryption."""

LONGEST_TEXT_CHARS = 300


def render_card(card: Card, *, alert: bool = True) -> Rendered:
    """Return the card as the JSON that the service worker reads; it never shows all arguments.

    All notifications of an item have one tag, so that each replaces the one before. `alert` makes a sound again.
    """
    if card.live:
        title, body = "Decide before it runs" if not card.urgent else "Urgent: decide before it runs", card.headline
    else:
        title, body = "Closed", f"{cut(card.closing, LONGEST_TEXT_CHARS)}\n{card.headline}"
    payload: dict[str, JsonValue] = {
        "title": title,
        "body": body,
        "path": urlsplit(card.link).path,
        "tag": tag_of(card),
        "alert": alert and card.live,
    }
    encoded = json.dumps(payload, ensure_ascii=False).encode()
    return Rendered(encoded, f"{title}\n{body}", False, allowed_actions(card, complete=False, decides=frozenset()))


def render_digest(cards: Sequence[Card], event_id: str) -> bytes:
    """Return the JSON of a notification about many open items, which opens the inbox."""
    digest = build_digest(cards, LONGEST_TEXT_CHARS, lambda entry: len(entry.text) + 1)
    lines = [*(entry.text for entry in digest.entries), *([digest.rest] if digest.rest else [])]
    payload = {"title": digest.title, "body": "\n".join(lines), "path": "/", "tag": hash_tag(event_id), "alert": True}
    return json.dumps(payload, ensure_ascii=False).encode()


def tag_of(card: Card) -> str:
    """Return the item's name in notifications and as the push service's topic: 32 characters of base64url."""
    return hash_tag(f"{card.suspension_id} {card.item_id}")


def hash_tag(name: str) -> str:
    """Return a name as push services take it."""
    return sha256(name.encode()).hexdigest()[:32]
