"""Deliveries of cards are queued with their item, follow it, and escalate when nobody can be reached."""

from typing import Any

import pytest

from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import Fallback, FallbackAction
from sayso.core.transitions.deadlines import escalate, expire, needs_sight, remind, see
from sayso.core.transitions.deciding import cancel, decide, extend
from sayso.core.transitions.deliveries import (
    AT_ONCE,
    card_version,
    move_cards,
    needs_attempt,
    next_delivery_ms,
    record_deliveries,
)
from tests.sayso.samples import T0, ask, pending, person, types_of, word

STEPS = ({"after_s": 60, "reviewers": ("ben",)}, {"after_s": 120, "reviewers": ("cleo", "dora")})


def notified(**terms: Any) -> SuspensionRecord:
    return pending(ask(**{"channels": ("slack",), "reviewers": ("ada",), **terms}))


def become(record: SuspensionRecord, person: str, **fields: Any) -> DeliveryReport:
    """Return the report that changes a person's delivery."""
    (before,) = [one for one in record.items[0].deliveries if one.person == person]
    return DeliveryReport("i1", before.key, (before.model_copy(update=fields),))


def sent(record: SuspensionRecord, person: str = "ada") -> SuspensionRecord:
    shown = card_version(record, record.items[0])
    report = become(record, person, state=DeliveryState.SENT, shown=shown, references={"U1": "m1"})
    return record_deliveries(record, (report,), T0).record


def only(item: Item) -> CardDelivery:
    (found,) = item.deliveries
    return found


def test_suspend_queues_a_delivery_per_channel_and_reviewer() -> None:
    record = notified(channels=("slack", "mail"), reviewers=("ada", "group:ops"))
    keys = [one.key for one in record.items[0].deliveries]
    assert keys == [("slack", "ada"), ("slack", "group:ops"), ("mail", "ada"), ("mail", "group:ops")]
    assert next_delivery_ms(record) == AT_ONCE


def test_suspend_queues_one_delivery_per_channel_without_reviewers() -> None:
    assert [one.key for one in notified(reviewers=()).items[0].deliveries] == [("slack", "")]


def test_headless_item_has_no_delivery() -> None:
    record = notified(timeout_s=0)
    assert record.items[0].deliveries == ()
    assert next_delivery_ms(record) is None


def test_sent_card_needs_no_attempt_until_the_item_changes() -> None:
    record = sent(notified(extend_by_s=600))
    assert next_delivery_ms(record) is None
    extended = extend(record, "i1", T0 + 400_000, person("ada"), T0 + 1).record
    assert next_delivery_ms(extended) == AT_ONCE, "the card shows the old digest"


@pytest.mark.parametrize("close", ["decide", "expire", "cancel"])
def test_closed_item_updates_its_card(close: str) -> None:
    record = sent(notified())
    late = T0 + 300_000
    steps = {
        "decide": lambda: decide(record, word(record), T0 + 5),
        "expire": lambda: expire(record, late),
        "cancel": lambda: cancel(record, person("bot"), None, T0 + 5),
    }
    closed = steps[close]().record
    assert needs_attempt(closed, closed.items[0], only(closed.items[0]))
    assert next_delivery_ms(closed) is not None


def test_queued_card_of_a_closed_item_is_never_sent() -> None:
    record = notified()
    closed = decide(record, word(record), T0 + 5).record
    assert next_delivery_ms(closed) is None


def test_reminder_is_due_on_sent_cards() -> None:
    record = sent(notified(remind_after_s=(60,)))
    reminded = remind(record, T0 + 60_000).record
    assert next_delivery_ms(reminded) == AT_ONCE
    told = record_deliveries(reminded, (become(reminded, "ada", reminded=1),), T0 + 60_001).record
    assert next_delivery_ms(told) is None


def test_record_deliveries_writes_first_success_and_failure() -> None:
    record = notified()
    failed = record_deliveries(record, (become(record, "ada", state=DeliveryState.FAILED, reason="429"),), T0)
    assert types_of(failed) == ["card_failed"]
    again = record_deliveries(failed.record, (become(failed.record, "ada", tries=2),), T0)
    assert types_of(again) == []
    assert types_of(
        record_deliveries(failed.record, (become(failed.record, "ada", state=DeliveryState.SENT),), T0)
    ) == ["card_sent"]


def test_group_becomes_one_delivery_per_member_without_repetition() -> None:
    record = sent(notified(reviewers=("ada", "group:ops")))
    members = tuple(CardDelivery(channel="slack", person=name, state=DeliveryState.SENT) for name in ("ada", "ben"))
    after = record_deliveries(record, (DeliveryReport("i1", ("slack", "group:ops"), members),), T0).record
    assert [one.key for one in after.items[0].deliveries] == [("slack", "ada"), ("slack", "ben")]
    assert after.items[0].deliveries[0].references == {"U1": "m1"}


def test_failed_deliveries_ask_the_next_step_at_once() -> None:
    record = notified(escalate=STEPS)
    change = record_deliveries(record, (become(record, "ada", state=DeliveryState.FAILED),), T0 + 1)
    assert types_of(change) == ["card_failed", "escalated"]
    item = change.record.items[0]
    assert [one.key for one in item.deliveries] == [("slack", "ada"), ("slack", "ben")]
    assert item.terms.reviewers == ("ada", "ben")
    assert next_delivery_ms(change.record) == AT_ONCE


def test_step_outside_working_hours_asks_the_next_one_at_once() -> None:
    record = notified(reviewers=("ada", "ben"), escalate=STEPS[1:])
    waits = become(record, "ada", off_duty=True, next_try_at_ms=T0 + 9_000)
    half = record_deliveries(record, (waits,), T0 + 1)
    assert types_of(half) == [], "ben may still be reached"
    change = record_deliveries(half.record, (become(half.record, "ben", state=DeliveryState.FAILED),), T0 + 2)
    assert types_of(change) == ["card_failed", "escalated"]
    held = change.record.items[0].deliveries[0]
    assert (held.state, needs_attempt(change.record, change.record.items[0], held)) == (DeliveryState.QUEUED, True)
    last = record_deliveries(notified(), (become(notified(), "ada", off_duty=True),), T0 + 1)
    assert types_of(last) == [], "without another step the card waits"


def test_one_delivered_card_of_a_step_prevents_escalation() -> None:
    record = sent(notified(reviewers=("ada", "ben"), escalate=STEPS[1:]))
    change = record_deliveries(record, (become(record, "ben", state=DeliveryState.FAILED),), T0 + 1)
    assert types_of(change) == ["card_failed"]


def test_escalation_by_time_queues_the_deliveries_of_its_step() -> None:
    record = sent(notified(escalate=STEPS))
    called = escalate(record, T0 + 60_000).record
    assert [(one.person, one.step) for one in called.items[0].deliveries] == [("ada", 0), ("ben", 1)]
    assert needs_attempt(called, called.items[0], called.items[0].deliveries[0]), "the first card has an old digest"


def test_report_about_a_removed_delivery_changes_nothing() -> None:
    record = notified()
    report = DeliveryReport("i1", ("mail", "ada"), (CardDelivery(channel="mail", person="ada"),))
    assert record_deliveries(record, (report,), T0).record is record


def test_late_report_about_a_closed_item_writes_no_event() -> None:
    record = sent(notified())
    closed = cancel(record, person("bot"), None, T0 + 5).record
    shown = card_version(closed, closed.items[0])
    change = record_deliveries(closed, (become(closed, "ada", shown=shown),), T0 + 9)
    assert change.events == ()
    assert change.record.updated_at_ms == T0 + 5, "the time of the cancellation stays"
    assert next_delivery_ms(change.record) is None


def test_delivered_card_lets_the_fallback_approve() -> None:
    terms = {"fallback": Fallback(action=FallbackAction.APPROVE), "unattended_approval": True}
    record = notified(**terms)
    assert needs_sight(record, record.items[0])
    failed = record_deliveries(record, (become(record, "ada", state=DeliveryState.FAILED),), T0).record
    assert expire(failed, T0 + 300_000).record.items[0].outcome.verdict == "denied"  # type: ignore[union-attr]
    delivered = sent(record)
    assert expire(delivered, T0 + 300_000).record.items[0].outcome.verdict == "approved"  # type: ignore[union-attr]


def test_see_marks_the_persons_delivery() -> None:
    record = sent(notified())
    seen = see(record, "i1", person("ada"), T0 + 7).record
    assert (only(seen.items[0]).state, only(seen.items[0]).seen_at_ms) == (DeliveryState.SEEN, T0 + 7)
    assert see(seen, "i1", person("ada"), T0 + 8).record is seen


def people_of(record: SuspensionRecord) -> list[tuple[str, str]]:
    return [(one.person, str(one.state)) for one in record.items[0].deliveries]


def test_move_cards_keeps_a_sent_card_and_queues_the_delegates() -> None:
    change = move_cards(sent(notified()), {"ada": ("ben", "cleo")}, T0 + 5)
    assert people_of(change.record) == [("ada", "sent"), ("cleo", "queued")]
    assert next_delivery_ms(change.record) == AT_ONCE
    (event,) = change.events
    assert (event.type, event.data["person"], event.data["delegate"]) == ("card_moved", "ada", "cleo")
    assert move_cards(change.record, {"ada": ("ben", "cleo")}, T0 + 6).record is change.record


def test_move_cards_replaces_one_that_was_not_sent() -> None:
    failed = record_deliveries(notified(), (become(notified(), "ada", state=DeliveryState.FAILED),), T0).record
    assert people_of(move_cards(failed, {"ada": ("ben",)}, T0).record) == [("ben", "queued")]


def test_move_cards_sends_a_delegate_no_second_card() -> None:
    record = notified(reviewers=("ada", "ben"))
    change = move_cards(record, {"ada": ("ben",)}, T0)
    assert people_of(change.record) == [("ben", "queued")]
    assert change.events == ()


@pytest.mark.parametrize("chain", [(), ("bot",), ("bot", "ben"), ("ben", "bot")])
def test_move_cards_never_reaches_the_requester(chain: tuple[str, ...]) -> None:
    record = sent(notified())
    assert move_cards(record, {"ada": chain}, T0).record is record


def test_move_cards_leaves_closed_items() -> None:
    record = pending(ask(0, channels=("slack",), reviewers=("ada",)), ask(1))
    closed = decide(record, word(record), T0).record
    assert move_cards(closed, {"ada": ("ben",)}, T0).record is closed


def test_reviewer_asked_again_by_a_step_keeps_their_delivery() -> None:
    record = sent(notified(escalate=({"after_s": 60, "reviewers": ("ada", "ben")},)))
    called = escalate(record, T0 + 60_000).record
    assert [(one.person, one.state) for one in called.items[0].deliveries] == [
        ("ada", DeliveryState.SENT),
        ("ben", DeliveryState.QUEUED),
    ]


def test_card_that_is_updated_is_not_sent_again() -> None:
    record = sent(notified())
    change = record_deliveries(record, (become(record, "ada", shown="v2"),), T0 + 1)
    assert (types_of(change), only(change.record.items[0]).shown) == ([], "v2")


def test_closed_item_escalates_nothing_when_its_card_fails() -> None:
    terms: dict[str, Any] = {"channels": ("slack",), "reviewers": ("ada",), "escalate": STEPS}
    record = pending(ask(**terms), ask(1, **terms))
    closed = decide(record, word(record), T0).record
    change = record_deliveries(closed, (become(closed, "ada", state=DeliveryState.FAILED),), T0 + 1)
    assert types_of(change) == ["card_failed"]
