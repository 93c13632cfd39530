"""The requester is notified of the outcome on the first channel of the rule where they have an address."""

from typing import Any

import pytest

from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.wire.people import Preferences
from service.channels.base import DeliveryFailed
from service.channels.kinds import Channels
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending
from tests.channels import Book, DigestChannel, MemoryChannel, RoomChannel
from tests.workers.notify.test_interruptions import QUIET
from tests.workers.notify.test_notifier import deliver, read
from workers.notify.attempts import Gate
from workers.notify.notifier import Notifier


@pytest.fixture
def chat() -> MemoryChannel:
    return DigestChannel(name="chat")


@pytest.fixture
def book() -> Book:
    return Book({"anna": ("A1",), "demo": ("D1", "D2")})


@pytest.fixture
def notifier(wiring: Wiring, chat: MemoryChannel, book: Book) -> Notifier:
    channels = {"room": RoomChannel(name="room"), "chat": chat}
    return Notifier(wiring, Channels({**channels}), book, Gate(wiring.attempts))


async def decided(wiring: Wiring, notifier: Notifier, **terms: Any) -> SuspensionRecord:
    """Return a suspension whose card was sent to anna, who approved it."""
    rule = RuleTerms(channels=("gone", "room", "chat"), reviewers=("anna",), notify_requester=True, **terms)
    record = await make_pending(wiring, ask(terms=rule))
    await deliver(notifier)
    return await approve(wiring, record)


async def find_notice(wiring: Wiring, record: SuspensionRecord) -> CardDelivery | None:
    found = [one for one in (await read(wiring, record)).items[0].deliveries if one.outcome]
    return found[0] if found else None


async def make_due(wiring: Wiring, record: SuspensionRecord) -> None:
    notice = await find_notice(wiring, record)
    assert notice is not None
    now = notice.model_copy(update={"next_try_at_ms": 1})
    await wiring.desk.record_deliveries(record.id, [DeliveryReport("i1", notice.key, (now,))])


def sent_to(chat: MemoryChannel, address: str) -> int:
    return chat.calls.count(("send", address))


async def test_requester_reads_who_decided_where_and_when(
    wiring: Wiring, notifier: Notifier, chat: MemoryChannel
) -> None:
    record = await decided(wiring, notifier)
    await deliver(notifier)
    assert await deliver(notifier) == 0
    assert sent_to(chat, "D1") == sent_to(chat, "D2") == 1
    assert not chat.cards["D1"].live
    assert chat.cards["D1"].closing.startswith("anna approved this over api at ")
    assert len({*chat.events}) == len(chat.events) == 3
    notice = await find_notice(wiring, record)
    assert notice is not None
    assert (notice.channel, notice.person, notice.state) == ("chat", "demo", DeliveryState.SENT)


async def test_requester_without_an_address_gets_no_notice(
    wiring: Wiring, notifier: Notifier, chat: MemoryChannel, book: Book
) -> None:
    del book.people["demo"]
    record = await decided(wiring, notifier)
    await deliver(notifier)
    assert await find_notice(wiring, record) is None
    assert await deliver(notifier) == 0
    assert sorted(chat.cards) == ["A1"]


async def test_failed_notice_is_repeated_and_then_given_up(
    wiring: Wiring, notifier: Notifier, chat: MemoryChannel
) -> None:
    record = await decided(wiring, notifier)
    chat.failure = DeliveryFailed("503")
    for tries in range(1, 11):
        await deliver(notifier)
        notice = await find_notice(wiring, record)
        assert notice is not None
        assert (notice.state, notice.tries, notice.reason) == (DeliveryState.FAILED, tries, "503")
        assert (notice.next_try_at_ms is None) is (tries == 10)
        if tries < 10:
            notifier.gate.breakers.note(chat.destination, accepted=True, now_ms=0)
            await make_due(wiring, record)


async def test_notice_waits_for_the_end_of_quiet_hours_only(
    wiring: Wiring, notifier: Notifier, chat: MemoryChannel, book: Book
) -> None:
    book.preferences["demo"] = QUIET.model_copy(update={"digest": "daily", "cap_per_hour": 1})
    record = await decided(wiring, notifier, timeout_s=60)
    await deliver(notifier)
    notice = await find_notice(wiring, record)
    assert notice is not None
    assert (notice.state, sent_to(chat, "D1")) == (DeliveryState.QUEUED, 0)
    assert (notice.reason or "").endswith("quiet hours of demo.")
    book.preferences["demo"] = Preferences(digest="daily")
    await make_due(wiring, record)
    await deliver(notifier)
    assert sent_to(chat, "D1") == 1


async def test_urgent_outcome_breaks_through(
    wiring: Wiring, notifier: Notifier, chat: MemoryChannel, book: Book
) -> None:
    book.preferences["demo"] = QUIET
    await decided(wiring, notifier, urgent=True)
    await deliver(notifier)
    assert sent_to(chat, "D1") == 1
