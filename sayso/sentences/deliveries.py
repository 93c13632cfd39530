"""Sentences about deliveries: who was notified of an item, over which channel and when, or why not."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sayso.records.deliveries import DeliveryState
from sayso.sentences.moments import Moment, Sentence, compose
from sayso.sentences.names import name_reviewers
from sayso.text.language import _, mark

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


class _Delivery(Protocol):
    """A stored delivery, or one from an API response."""

    @property
    def channel(self) -> str: ...
    @property
    def person(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def step(self) -> int: ...
    @property
    def outcome(self) -> bool: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def next_try_at_ms(self) -> int | None: ...
    @property
    def sent_at_ms(self) -> int | None: ...
    @property
    def seen_at_ms(self) -> int | None: ...


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
    failed = bool(deliveries) and all(delivery.state == DeliveryState.FAILED for delivery in deliveries)
    return _(NOBODY) if live and failed else ""


def name_recipient(person: str) -> str:
    """Return the person or group of a delivery as the subject of a sentence."""
    named = name_reviewers([person]) if person else _("The channel's own destination")
    return named if named == person else named[:1].upper() + named[1:]


def end_sentence(text: str) -> str:
    """Return a text with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
