"""Cards as notifications: a headline and a link. The item's page, which requires a sign-in, shows the rest."""

import json
from hashlib import sha256
from urllib.parse import urlsplit

from pydantic import JsonValue

from sayso.text.lengths import cut
from service.channels.base import Rendered, allowed_actions
from service.channels.cards import Card

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


def tag_of(card: Card) -> str:
    """Return the item's name in notifications and as the push service's topic: 32 characters of base64url."""
    return sha256(f"{card.suspension_id} {card.item_id}".encode()).hexdigest()[:32]
