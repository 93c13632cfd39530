"""Cards wait for quiet hours, digests and the limit of interruptions; urgent ones do not."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sayso.core.calendar import Hours, WorkingHours
from sayso.core.clock import now_ms
from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import EscalationStep, RuleTerms
from sayso.wire.people import Preferences
from service.channels.base import DeliveryFailed, Recipient
from service.channels.kinds import Channels
from service.core.wiring import Wiring
from tests.builders import ask, make_pending
from tests.channels import Book, DigestChannel, MemoryChannel
from tests.workers.notify.test_notifier import deliver, deliveries
from workers.notify.attempts import Gate
from workers.notify.interruptions import Digests
from workers.notify.notifier import Notifier

HOUR_S = 3_600


def clock(hours: float) -> str:
    """Return the time of day in UTC some hours from now."""
    return (datetime.now(UTC) + timedelta(hours=hours)).strftime("%H:%M")


QUIET = Preferences(quiet_hours=Hours(start=clock(-2), end=clock(2)))


@pytest.fixture
def channel() -> DigestChannel:
    return DigestChannel()


@pytest.fixture
def book() -> Book:
    return Book({"anna": ("A1",), "ben": ("B1",)})


@pytest.fixture
def notifier(wiring: Wiring, channel: MemoryChannel, book: Book) -> Notifier:
    return Notifier(wiring, Channels({"memory": channel}), book, Gate(wiring.attempts))


async def waiting(wiring: Wiring, *reviewers: str, late_s: int = 0, **terms: Any) -> SuspensionRecord:
    given = {"channels": ("memory",), "reviewers": reviewers, "timeout_s": 24 * HOUR_S, **terms}
    return await make_pending(wiring, ask(terms=RuleTerms(**given)), late_ms=late_s * 1000)


async def only(wiring: Wiring, record: SuspensionRecord) -> CardDelivery:
    (one,) = await deliveries(wiring, record)
    return one


async def test_quiet_hours_hold_a_card_until_they_end(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    book.preferences["anna"] = QUIET
    record = await waiting(wiring, "anna")
    await deliver(notifier)
    assert await deliver(notifier) == 0
    assert channel.calls == []
    one = await only(wiring, record)
    assert (one.state, one.tries) == (DeliveryState.QUEUED, 0)
    assert (one.reason or "").endswith("quiet hours of anna.")
    assert HOUR_S < ((one.next_try_at_ms or 0) - now_ms()) / 1000 <= 2 * HOUR_S
    book.preferences.clear()  # as if they had ended
    due = one.model_copy(update={"next_try_at_ms": 1})
    await wiring.desk.record_deliveries(record.id, [DeliveryReport("i1", one.key, (due,))])
    await deliver(notifier)
    one = await only(wiring, record)
    assert (one.state, one.reason, channel.calls) == (DeliveryState.SENT, None, [("send", "A1")])


async def test_urgent_card_breaks_through(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    book.preferences["anna"] = QUIET.model_copy(update={"digest": "daily", "cap_per_hour": 1})
    for _ in range(2):
        await waiting(wiring, "anna", urgent=True)
    await deliver(notifier)
    assert channel.calls == [("send", "A1"), ("send", "A1")]


async def test_hold_past_the_deadline_asks_the_next_step(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    book.preferences["anna"] = QUIET
    step = EscalationStep(after_s=HOUR_S, reviewers=("ben",))
    record = await waiting(wiring, "anna", timeout_s=HOUR_S, escalate=(step,))
    await deliver(notifier)
    await deliver(notifier)
    first, second = await deliveries(wiring, record)
    assert (first.state, second.state) == (DeliveryState.FAILED, DeliveryState.SENT)
    assert (first.reason or "").endswith("That is after the deadline.")
    assert channel.calls == [("send", "B1")]


async def test_step_outside_working_hours_lets_the_next_one_be_asked_at_once(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    later = WorkingHours(hours=Hours(start=clock(2), end=clock(4)))
    book.preferences["anna"] = Preferences(working_hours=later)
    record = await waiting(wiring, "anna", escalate=(EscalationStep(after_s=HOUR_S, reviewers=("ben",)),))
    await deliver(notifier)
    await deliver(notifier)
    first, second = await deliveries(wiring, record)
    assert (first.state, first.off_duty, second.state) == (DeliveryState.QUEUED, True, DeliveryState.SENT)
    assert (first.reason or "").endswith("outside the working hours of anna.")
    book.preferences.clear()  # as if they had begun
    due = first.model_copy(update={"next_try_at_ms": 1})
    await wiring.desk.record_deliveries(record.id, [DeliveryReport("i1", first.key, (due,))])
    await deliver(notifier)
    first = next(one for one in await deliveries(wiring, record) if one.person == "anna")
    assert (first.state, first.off_duty) == (DeliveryState.SENT, False)


async def test_last_step_outside_working_hours_waits_for_them(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    book.preferences["anna"] = Preferences(working_hours=WorkingHours(hours=Hours(start=clock(2), end=clock(4))))
    record = await waiting(wiring, "anna")
    await waiting(wiring, "anna", urgent=True)
    await deliver(notifier)
    one = await only(wiring, record)
    assert (one.state, one.off_duty, channel.calls) == (DeliveryState.QUEUED, True, [("send", "A1")])


async def test_cap_holds_further_cards_for_the_rest_of_the_hour(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    book.preferences["anna"] = Preferences(cap_per_hour=1)
    await waiting(wiring, "anna")
    await deliver(notifier)
    second = await waiting(wiring, "anna", "ben")
    await deliver(notifier)
    assert sorted(channel.calls) == [("send", "A1"), ("send", "B1")]
    held = {one.person: one for one in await deliveries(wiring, second)}["anna"]
    assert held.state is DeliveryState.QUEUED
    assert (held.reason or "").endswith("at most 1 interruption an hour of anna.")


async def test_reminder_in_quiet_hours_is_skipped(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    record = await waiting(wiring, "anna", "ben", late_s=5, remind_after_s=(3,))
    await deliver(notifier)
    book.preferences["anna"] = QUIET
    await wiring.desk.tick(record.id)
    await deliver(notifier)
    assert sorted(channel.calls) == [("remind", "B1"), ("send", "A1"), ("send", "B1")]
    assert await deliver(notifier) == 0


async def test_digest_collects_the_cards_of_a_person(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    book.preferences["anna"] = Preferences(digest="hourly")
    held = await waiting(wiring, "anna")
    await deliver(notifier)
    assert ((await only(wiring, held)).reason or "").endswith("hourly digest of anna.")
    old = [await waiting(wiring, "anna", late_s=HOUR_S) for _ in range(3)]
    await deliver(notifier)
    assert channel.digests == [sorted(record.id for record in old)]
    assert channel.calls == [("digest", "A1")]
    for record in old:
        sent = await only(wiring, record)
        assert (sent.state, sent.references) == (DeliveryState.SENT, {})


async def test_digest_on_a_channel_without_digests_sends_single_cards(
    wiring: Wiring, notifier: Notifier, book: Book
) -> None:
    plain = MemoryChannel()
    notifier.channels = Channels({"memory": plain})
    book.preferences["anna"] = Preferences(digest="hourly")
    for _ in range(2):
        await waiting(wiring, "anna", late_s=HOUR_S)
    await deliver(notifier)
    assert plain.calls == [("send", "A1"), ("send", "A1")]


async def test_failed_digest_fails_each_of_its_cards(
    wiring: Wiring, notifier: Notifier, channel: DigestChannel, book: Book
) -> None:
    channel.failure = DeliveryFailed("503")
    book.preferences["anna"] = Preferences(digest="hourly")
    records = [await waiting(wiring, "anna", late_s=HOUR_S) for _ in range(2)]
    await deliver(notifier)
    assert len(channel.calls) == 1
    for record in records:
        one = await only(wiring, record)
        assert (one.state, one.reason) == (DeliveryState.FAILED, "503")


async def test_digests_keep_people_and_channels_apart() -> None:
    sent: list[tuple[int, str]] = []
    digests = Digests(window_s=0)

    async def flush(cards: tuple[Any, ...], event_id: str) -> None:
        sent.append((len(cards), event_id))

    card: Any = object()
    places = [("mail", "A"), ("mail", "B"), ("chat", "A"), ("mail", "A")]
    await asyncio.gather(
        *(digests.join(channel, Recipient("anna", to), card, str(n), flush) for n, (channel, to) in enumerate(places))
    )
    assert sorted(count for count, _ in sent) == [1, 1, 2]
    assert len({event_id for _, event_id in sent}) == 3
