"""Sentences about deliveries."""

from typing import Any

import pytest

from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.sentences.deadlines import describe_clock, write_sentence
from sayso.core.sentences.deliveries import NOBODY, describe_delivery, describe_silence

AT = 1_700_000_000_000
CLOCK = "2023-11-14 22:13:20 UTC"


def delivery(state: str = "queued", person: str = "anna", **fields: Any) -> CardDelivery:
    return CardDelivery(channel="ops", person=person, state=DeliveryState(state), **fields)


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (delivery(), "anna is not notified over ops yet."),
        (delivery("sent", sent_at_ms=AT), f"anna was notified over ops at {CLOCK}."),
        (delivery("seen", seen_at_ms=AT), f"anna was notified over ops and opened the item at {CLOCK}."),
        (delivery("sent", "group:payments", step=2), "The group payments (escalation step 2) was notified over ops."),
        (delivery("sent", outcome=True, sent_at_ms=AT), f"anna was notified of the outcome over ops at {CLOCK}."),
        (delivery(outcome=True), "anna is not notified of the outcome over ops yet."),
        (delivery("sent", ""), "The channel's own destination was notified over ops."),
        (
            delivery("failed", reason="No address.", next_try_at_ms=None),
            "anna was not notified over ops: No address. No further attempt follows.",
        ),
        (
            delivery("failed", reason="HTTP 503", next_try_at_ms=AT),
            f"anna was not notified over ops: HTTP 503. The next attempt is due at {CLOCK}.",
        ),
        (
            delivery("sent", sent_at_ms=AT, reason="HTTP 503", next_try_at_ms=AT),
            f"anna was notified over ops at {CLOCK}. The last attempt failed: HTTP 503. "
            f"The next attempt is due at {CLOCK}.",
        ),
    ],
)
def test_describe_delivery_says_who_when_and_why_not(one: CardDelivery, sentence: str) -> None:
    assert write_sentence(describe_delivery(one), describe_clock) == sentence


def test_describe_silence_only_if_every_delivery_failed() -> None:
    failed, sent = delivery("failed"), delivery("sent", "ben")
    assert describe_silence([failed, failed], live=True) == NOBODY
    assert describe_silence([failed, sent], live=True) == ""
    assert describe_silence([failed, delivery()], live=True) == ""
    assert describe_silence([], live=True) == ""
    assert describe_silence([failed], live=False) == ""
