"""The requester is notified of the outcome once, where the rule says so and they do not know it anyway."""

from collections.abc import Callable
from typing import Any

import pytest

from sayso.core.records.deliveries import DeliveryReport, DeliveryState
from sayso.core.records.items import Item
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.transitions.deadlines import expire
from sayso.core.transitions.deciding import cancel, decide
from sayso.core.transitions.deliveries import AT_ONCE, next_delivery_ms, record_deliveries
from tests.sayso.core.transitions.test_deliveries import notified, sent
from tests.sayso.samples import T0, ask, pending, person, types_of, word

OUTCOME = ("outcome",)
LATE = T0 + 300_000


def outcomes(item: Item) -> list[tuple[str, str, str]]:
    return [(one.channel, one.person, one.state) for one in item.deliveries if one.outcome]


CLOSINGS: dict[str, Callable[[SuspensionRecord], SuspensionRecord]] = {
    "decide": lambda record: decide(record, word(record), T0 + 5).record,
    "expire": lambda record: expire(record, LATE).record,
    "cancel": lambda record: cancel(record, person("root"), None, T0 + 5).record,
}


def sent_on_slack(**terms: Any) -> SuspensionRecord:
    return sent(notified(notify_requester=True, **terms))


@pytest.mark.parametrize("close", CLOSINGS)
def test_closed_item_queues_its_outcome_for_the_requester(close: str) -> None:
    closed = CLOSINGS[close](sent_on_slack())
    assert outcomes(closed.items[0]) == [("slack", "bot", "queued")]
    assert next_delivery_ms(closed) is not None


@pytest.mark.parametrize("close", CLOSINGS)
def test_rule_without_notify_requester_queues_nothing(close: str) -> None:
    assert outcomes(CLOSINGS[close](sent(notified())).items[0]) == []


def test_rule_without_channels_queues_nothing() -> None:
    record = pending(ask(notify_requester=True))
    assert decide(record, word(record), T0 + 5).record.items[0].deliveries == ()


def test_requester_who_closed_the_item_is_not_notified() -> None:
    cancelled = cancel(sent_on_slack(), person("bot"), None, T0 + 5).record
    record = sent_on_slack(no_self_approval=False, reviewers=("ada", "bot"))
    decided = decide(record, word(record, by="bot"), T0 + 5).record
    assert outcomes(cancelled.items[0]) == outcomes(decided.items[0]) == []


def test_requester_whose_card_was_sent_reads_the_outcome_there() -> None:
    record = sent_on_slack(no_self_approval=False, reviewers=("ada", "bot"))
    unsent = decide(record, word(record), T0 + 5).record
    assert outcomes(unsent.items[0]) == [("slack", "bot", "queued")]
    assert len(unsent.items[0].deliveries) == 3, "the card that was not sent stays beside it"
    informed = sent(record, "bot")
    assert outcomes(decide(informed, word(informed), T0 + 5).record.items[0]) == []


def test_outcome_that_is_reported_needs_no_further_attempt() -> None:
    closed = CLOSINGS["cancel"](sent_on_slack())
    (queued,) = [one for one in closed.items[0].deliveries if one.outcome]
    failed = queued.model_copy(update={"state": DeliveryState.FAILED, "next_try_at_ms": T0 + 9, "tries": 1})
    again = record_deliveries(closed, (DeliveryReport("i1", OUTCOME, (failed,)),), T0 + 6).record
    assert next_delivery_ms(again) == AT_ONCE, "the reviewer's card is updated as well"
    final = failed.model_copy(update={"next_try_at_ms": None})
    over = record_deliveries(again, (DeliveryReport("i1", OUTCOME, (final,)),), T0 + 9).record
    assert outcomes(over.items[0]) == [("slack", "bot", "failed")]


def test_requester_without_an_address_is_not_queued_again() -> None:
    record = pending(*(ask(place, channels=("slack",), notify_requester=True) for place in range(2)))
    first = decide(record, word(record), T0 + 5).record
    assert outcomes(first.items[0]) == [("slack", "bot", "queued")]
    removed = record_deliveries(first, (DeliveryReport("i1", OUTCOME, ()),), T0 + 6)
    assert types_of(removed) == []
    both = decide(removed.record, word(removed.record, item_id="i2"), T0 + 7).record
    assert [outcomes(item) for item in both.items] == [[], [("slack", "bot", "queued")]]


def test_items_closed_by_coverage_are_notified_too() -> None:
    drafts = [ask(place, channels=("slack",), notify_requester=True) for place in range(2)]
    record = pending(*drafts).model_copy(update={"resume": ResumeSpec(coverage="any")})
    closed = decide(record, word(record), T0 + 5).record
    assert [len(outcomes(item)) for item in closed.items] == [1, 1]
