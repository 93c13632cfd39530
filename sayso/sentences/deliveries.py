"""Sentences about deliveries: who was notified of an item, over which channel and when, or why not."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sayso.records.deliveries import DeliveryState
from sayso.sentences.names import name_reviewers
from sayso.sentences.times import describe_clock

NOBODY = "Nobody was notified of this item: every delivery failed."


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


def describe_delivery(one: _Delivery) -> str:
    """Return who was notified over which channel, and when; or why not, and when the next attempt is due."""
    step = f" (escalation step {one.step})" if one.step else ""
    who, over = f"{name_recipient(one.person)}{step}", f"{'of the outcome ' if one.outcome else ''}over {one.channel}"
    again = f" The next attempt is due at {describe_clock(one.next_try_at_ms)}." if one.next_try_at_ms else ""
    reason = f" The last attempt failed: {end_sentence(one.reason)}" if one.reason else ""
    if one.state == DeliveryState.SEEN:
        return f"{who} was notified {over} and opened the item{_when(one.seen_at_ms)}.{reason}{again}"
    if one.state == DeliveryState.SENT:
        return f"{who} was notified {over}{_when(one.sent_at_ms)}.{reason}{again}"
    if one.state == DeliveryState.FAILED:
        failed = end_sentence(one.reason or "the provider gave no reason")
        return f"{who} was not notified {over}: {failed}{again or ' No further attempt follows.'}"
    waits = f" {end_sentence(one.reason)}" if one.reason else ""
    return f"{who} is not notified {over} yet.{waits}{again}"


def describe_silence(deliveries: Sequence[_Delivery], *, live: bool) -> str:
    """Return that nobody was notified of an open item with channels; empty for all others."""
    failed = bool(deliveries) and all(one.state == DeliveryState.FAILED for one in deliveries)
    return NOBODY if live and failed else ""


def name_recipient(person: str) -> str:
    """Return the person or group of a delivery as the subject of a sentence."""
    named = name_reviewers([person]) if person else "The channel's own destination"
    return named.replace("the group", "The group", 1)


def end_sentence(text: str) -> str:
    """Return a text with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _when(at_ms: int | None) -> str:
    return f" at {describe_clock(at_ms)}" if at_ms else ""
