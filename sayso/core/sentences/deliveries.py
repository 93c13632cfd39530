"""Sentences about deliveries, and to people in chats: their link, requests for a reply, and replies that do not fit."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import canonical_json
from sayso.core.records.decisions import Actor
from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.records.items import Item
from sayso.core.records.proofs import OUTSIDER_PREFIX
from sayso.core.records.terms import GROUP_PREFIX
from sayso.core.sentences import name_reviewers
from sayso.core.sentences.deadlines import Moment, Sentence, compose
from sayso.core.text.invisible import write_signs
from sayso.core.text.language import _, cut, mark

NOBODY = mark("Nobody was notified of this item: every delivery failed.")

_NOTICES: dict[str, str] = {
    DeliveryState.QUEUED: mark("%(who)s is not notified over %(channel)s yet"),
    DeliveryState.SENT: mark("%(who)s was notified over %(channel)s"),
    DeliveryState.SEEN: mark("%(who)s was notified over %(channel)s and opened the item"),
    DeliveryState.FAILED: mark("%(who)s was not notified over %(channel)s"),
}
_OUTCOME_NOTICES: dict[str, str] = {
    DeliveryState.QUEUED: mark("%(who)s is not notified of the outcome over %(channel)s yet"),
    DeliveryState.SENT: mark("%(who)s was notified of the outcome over %(channel)s"),
    DeliveryState.SEEN: mark("%(who)s was notified of the outcome over %(channel)s and opened the item"),
    DeliveryState.FAILED: mark("%(who)s was not notified of the outcome over %(channel)s"),
}


_NOTE_CHARS = 120


class Delivery(NamedTuple):
    """A delivery from an API response, with its times in ms."""

    channel: str
    person: str
    state: str
    step: int
    outcome: bool
    reason: str | None
    next_try_at_ms: int | None
    sent_at_ms: int | None
    seen_at_ms: int | None


_Delivery = CardDelivery | Delivery  # a stored delivery, or one from an API response


def describe_delivery(delivery: _Delivery) -> Sentence:
    """Return who was notified over which channel, and when; or why not, and when the next attempt is due."""
    who = name_recipient(delivery.person)
    if delivery.step:
        who = _("%(who)s (escalation step %(step)s)", who=who, step=delivery.step)
    notices = _OUTCOME_NOTICES if delivery.outcome else _NOTICES
    text = _(notices.get(delivery.state, notices[DeliveryState.QUEUED]), who=who, channel=delivery.channel)
    arrived = {DeliveryState.SEEN.value: delivery.seen_at_ms, DeliveryState.SENT.value: delivery.sent_at_ms}
    at_ms = arrived.get(delivery.state)
    notice = compose(_("%(notice)s at %(when)s"), notice=text, when=Moment(at_ms)) if at_ms else (text,)
    reason = end_sentence(delivery.reason) if delivery.reason else ""
    again = delivery.next_try_at_ms
    further = compose(_("The next attempt is due at %(when)s."), when=Moment(again)) if again else ()
    if delivery.state == DeliveryState.FAILED:
        reason = reason or _("the provider gave no reason.")
        further = further or (_("No further attempt follows."),)
        return (*notice, f": {reason} ", *further)
    if reason and delivery.state in arrived:
        reason = _("The last attempt failed: %(reason)s", reason=reason)
    return (*notice, f". {reason}" if reason else ".", *((" ", *further) if further else ()))


def describe_silence(deliveries: Sequence[_Delivery], *, live: bool) -> str:
    """Return that nobody was notified of an open item with channels; empty for all others."""
    inside = [delivery for delivery in deliveries if not delivery.person.startswith(OUTSIDER_PREFIX)]
    failed = bool(inside) and all(delivery.state == DeliveryState.FAILED for delivery in inside)
    return _(NOBODY) if live and failed else ""


def describe_forward(item: Item, reader: Actor | None = None) -> str:
    """Return who forwarded an open item to whom, as the reader sees it; empty unless its recipient is asked."""
    forward = item.forwarded
    if forward is None:
        return ""
    to, who = name_reviewers([forward.to]), forward.by.id
    if reader is not None and forward.by.id == reader.id:
        return _("you forwarded it to %(to)s", to=to)
    names = (reader.id, *(f"{GROUP_PREFIX}{group}" for group in reader.groups)) if reader is not None else ()
    if forward.to in names:
        return _("forwarded to you by %(who)s", who=who)
    return _("forwarded to %(to)s by %(who)s", to=to, who=who)


def quote_forward(item: Item, reader: Actor | None = None) -> str:
    """Return the same with the beginning of the note, in one line."""
    said = describe_forward(item, reader)
    note = cut(" ".join(item.forwarded.note.split()), _NOTE_CHARS) if item.forwarded is not None else ""
    return f"{said}: {note}" if note else said


def name_recipient(person: str) -> str:
    """Return the person or group of a delivery as the subject of a sentence."""
    named = name_reviewers([person]) if person else _("The channel's own destination")
    return named if named == person else named[:1].upper() + named[1:]


def end_sentence(text: str) -> str:
    """Return a text with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


NO_REASON = "-"  # the reply of somebody who gives no reason
LONGEST_REASON = 2000

LINK_FIRST = "This chat is linked to no reviewer. Create a code on your account page in Sayso, and send it here: {}"
LINKED = "This chat is linked to {}. Cards arrive here from now on."
STALE_CARD = "The item has changed since this card was sent. Open the item's page to decide."
PRIVATE_ONLY = "Decisions are taken in the private chat with this bot only."
NOT_A_CARD = "Reply to a card's question, or press a button on a card. To link this chat send: {}"
ASKED = "Your question was sent to {}. The answer appears on the card and on the item's page."
UNDONE = "Your decision was taken back, and nothing ran. You can decide anew."
WRITE_CHANGES = mark("Write what to change. The agent gets this text.")
UNKNOWN_BUTTON = "This button belongs to no item. Open the item's page to decide."

_MOST_CHOICES = 20


def describe_long_reason(reason: str) -> str:
    """Return what is wrong with a reason over `LONGEST_REASON`."""
    return f"The reason has {len(reason)} characters; at most {LONGEST_REASON} fit. Shorten it and send it again."


def request_reason(headline: str) -> str:
    """Return the request for the reason of a denial, which the denial waits for."""
    return f"Why do you deny {headline}? Reply with the reason, or with {NO_REASON} for none. Until then it stays open."


def request_keep_reason(call: str) -> str:
    """Return the request for the reason to keep a call that can be undone, which the decision waits for."""
    return f"Why do you keep {call}? Reply with the reason, or with {NO_REASON} for none. Until then it can be undone."


def request_changes(headline: str) -> str:
    """Return the request for what the agent should change in its call, which the decision waits for."""
    return f"What should change in {headline}? Reply with it; the agent gets your text. Until then it stays open."


def request_question(headline: str, owner: str) -> str:
    """Return the request for a question to the requester."""
    return f"What do you want to ask {owner} about {headline}? Reply with the question."


def request_value(headline: str, choices: Sequence[JsonValue] | None) -> str:
    """Return the request for a value, with the first choices."""
    offered = ""
    if choices is not None:
        texts = [choice if isinstance(choice, str) else canonical_json(choice).decode() for choice in choices]
        more = f", and {len(texts) - _MOST_CHOICES} more" if len(texts) > _MOST_CHOICES else ""
        offered = f" Choose one of: {', '.join(map(write_signs, texts[:_MOST_CHOICES]))}{more}."
    return f"Which value for {headline}? Reply with it, as text or JSON.{offered} Until then it stays open."
