"""Sentences to people in chats: linking of their address, requests for a reply, and replies that do not fit."""

from collections.abc import Sequence

from pydantic import JsonValue

from sayso.canonical_json import canonical_json
from sayso.text.invisible import write_signs

NO_REASON = "-"
"""The reply of somebody who gives no reason."""

LONGEST_REASON = 2000

LINK_FIRST = "This chat is linked to no reviewer. Create a code on your account page in Sayso, and send it here: {}"
LINKED = "This chat is linked to {}. Cards arrive here from now on."
STALE_CARD = "The item has changed since this card was sent. Open the item's page to decide."
PRIVATE_ONLY = "Decisions are taken in the private chat with this bot only."
NOT_A_CARD = "Reply to a card's question, or press a button on a card. To link this chat send: {}"
ASKED = "Your question was sent to {}. The answer appears on the card and on the item's page."
UNKNOWN_BUTTON = "This button belongs to no item. Open the item's page to decide."

_MOST_CHOICES = 20


def describe_long_reason(reason: str) -> str:
    """Return what is wrong with a reason over `LONGEST_REASON`."""
    return f"The reason has {len(reason)} characters; at most {LONGEST_REASON} fit. Shorten it and send it again."


def request_reason(headline: str) -> str:
    """Return the request for the reason of a denial, which the denial waits for."""
    return f"Why do you deny {headline}? Reply with the reason, or with {NO_REASON} for none. Until then it stays open."


def request_question(headline: str, owner: str) -> str:
    """Return the request for a question to the requester."""
    return f"What do you want to ask {owner} about {headline}? Reply with the question."


def request_value(headline: str, choices: Sequence[JsonValue] | None) -> str:
    """Return the request for a value, with the first choices."""
    offered = ""
    if choices is not None:
        more = f", and {len(choices) - _MOST_CHOICES} more" if len(choices) > _MOST_CHOICES else ""
        offered = f" Choose one of: {', '.join(map(_write_choice, choices[:_MOST_CHOICES]))}{more}."
    return f"Which value for {headline}? Reply with it, as text or JSON.{offered} Until then it stays open."


def _write_choice(choice: JsonValue) -> str:
    return write_signs(choice if isinstance(choice, str) else canonical_json(choice).decode())
