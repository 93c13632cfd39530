"""Cards reach people over a channel, follow their item, and failures are known on the item."""

from dataclasses import dataclass
from typing import Any

import structlog
from redis.asyncio import Redis

from sayso.core.records.decisions import ForwardRequest
from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import EscalationStep, Quorum, RuleTerms
from sayso.errors import NotFound
from service.channels.base import DeliveryFailed, Recipient
from service.channels.kinds import Channels
from service.core.outgoing.http import FAILURES_TO_OPEN
from service.core.store.attempts import NamedLeases
from service.core.store.channels import CardQueue
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending, person
from tests.channels import Book, MemoryChannel, RoomChannel
from tests.workers.notify.conftest import PEOPLE
from workers.notify.notifier import Notifier

KEYS = TenantKeys("default")


class LostBook(Book):
    """Cannot find ben."""

    async def find(self, channel: str, person: str, requester: str = "") -> tuple[Recipient, ...]:
        if person == "ben":
            raise NotFound("There is no reviewer named 'ben'.")
        return await super().find(channel, person, requester)


async def waiting(wiring: Wiring, *reviewers: str, **terms: Any) -> SuspensionRecord:
    """Return a suspension whose reviewers are notified over the channel."""
    return await make_pending(wiring, ask(terms=RuleTerms(channels=("memory",), reviewers=reviewers, **terms)))


async def deliver(notifier: Notifier) -> int:
    """Make one attempt at each due delivery; return the number of suspensions."""
    begun = await notifier.deliver_due()
    await notifier.finish()
    return begun


async def read(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    return (await wiring.desk.suspensions.read(record.id)).record


async def deliveries(wiring: Wiring, record: SuspensionRecord) -> list[CardDelivery]:
    return [*(await read(wiring, record)).items[0].deliveries]


async def make_due(wiring: Wiring, record: SuspensionRecord) -> None:
    """Make the failed delivery due now."""
    (one,) = await deliveries(wiring, record)
    now = one.model_copy(update={"next_try_at_ms": 1})
    await wiring.desk.record_deliveries(record.id, [DeliveryReport("i1", one.key, (now,))])


async def test_card_is_sent_once(wiring: Wiring, notifier: Notifier, channel: MemoryChannel) -> None:
    record = await waiting(wiring, "anna")
    assert await deliver(notifier) == 1
    assert await deliver(notifier) == 0
    assert channel.calls == [("send", "A1")]
    (one,) = await deliveries(wiring, record)
    assert (one.state, one.person, one.references) == (DeliveryState.SENT, "anna", {"A1": "m1"})


async def test_group_and_every_address_of_a_person_get_the_card(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    record = await waiting(wiring, "group:ops")
    await deliver(notifier)
    assert sorted(channel.calls) == [("send", "A1"), ("send", "B1"), ("send", "B2")]
    found = await deliveries(wiring, record)
    assert [(one.person, sorted(one.references)) for one in found] == [("anna", ["A1"]), ("ben", ["B1", "B2"])]


async def test_requester_is_not_asked_about_their_own_call(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    await waiting(wiring)
    await deliver(notifier)
    assert sorted(channel.cards) == ["A1", "B1", "B2"]


async def test_shared_destination_gets_one_card(wiring: Wiring, notifier: Notifier, channel: MemoryChannel) -> None:
    channel.shared_address = "#ops"
    await waiting(wiring)
    await deliver(notifier)
    assert channel.calls == [("send", "#ops")]


async def test_closed_item_updates_the_card(wiring: Wiring, notifier: Notifier, channel: MemoryChannel) -> None:
    record = await waiting(wiring, "anna", "ben")
    await deliver(notifier)
    await approve(wiring, record)
    await deliver(notifier)
    assert not any(card.live for card in channel.cards.values())
    assert channel.cards["B1"].closing.startswith("anna approved this over api")
    assert await deliver(notifier) == 0


async def test_claim_and_release_update_the_card(wiring: Wiring, notifier: Notifier, channel: MemoryChannel) -> None:
    record = await waiting(wiring, "anna", timeout_s=3_600)
    await deliver(notifier)
    for act, shown in ((wiring.desk.claim, True), (wiring.desk.release_claim, False)):
        await act(record.id, "i1", person("anna"))
        await deliver(notifier)
        assert ("Claimed" in dict(channel.cards["A1"].facts)) is shown
    assert channel.calls == [("send", "A1"), ("update", "A1"), ("update", "A1")]


async def test_lapsed_decision_reminds_those_still_asked(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    record = await waiting(wiring, "anna", "ben", "dora", timeout_s=3_600, quorum=Quorum(approve=3))
    await deliver(notifier)
    await approve(wiring, record, "anna")
    await approve(wiring, record, "dora")
    await deliver(notifier)
    channel.calls.clear()
    await wiring.desk.void_decisions(record.id, ("dora",))
    await deliver(notifier)
    assert sorted(channel.calls) == [
        *(("remind", "B1"), ("remind", "B2")),
        *(("update", "A1"), ("update", "B1"), ("update", "B2")),
    ]
    assert await deliver(notifier) == 0


async def test_forward_reminds_its_recipient_alone_with_the_note(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    record = await waiting(wiring, "anna", "ben", timeout_s=3_600)
    await deliver(notifier)
    channel.calls.clear()
    request = ForwardRequest(to="ben", digest=record.items[0].digest, note="You know this order.")
    await wiring.desk.forward(record.id, "i1", request, (person("ben"),), person("anna"))
    await deliver(notifier)
    assert sorted(channel.calls) == [
        *(("remind", "B1"), ("remind", "B2")),
        *(("update", "A1"), ("update", "B1"), ("update", "B2")),
    ]
    assert dict(channel.cards["B1"].facts)["Forwarded by"] == "anna, to ben: You know this order."
    assert await deliver(notifier) == 0


async def test_person_without_address_is_a_final_failure(wiring: Wiring, notifier: Notifier) -> None:
    record = await waiting(wiring, "cleo")
    await deliver(notifier)
    (one,) = await deliveries(wiring, record)
    assert (one.state, one.reason, one.next_try_at_ms) == (
        DeliveryState.FAILED,
        "cleo has no address on memory.",
        None,
    )


async def test_unknown_channel_is_a_final_failure(wiring: Wiring, notifier: Notifier) -> None:
    record = await waiting(wiring, "anna")
    notifier.channels = Channels({})
    await deliver(notifier)
    (one,) = await deliveries(wiring, record)
    assert one.reason == "There is no channel named memory."


async def test_failed_send_is_repeated_with_the_same_event_id(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    record = await waiting(wiring, "anna")
    channel.failure = DeliveryFailed("503", retry_after_s=60)
    await deliver(notifier)
    (one,) = await deliveries(wiring, record)
    assert (one.state, one.reason, one.tries) == (DeliveryState.FAILED, "503", 1)
    assert one.next_try_at_ms is not None
    assert one.next_try_at_ms >= record.created_at_ms + 60_000
    channel.failure = None
    await make_due(wiring, record)
    await deliver(notifier)
    (one,) = await deliveries(wiring, record)
    assert (one.state, one.reason, one.tries) == (DeliveryState.SENT, None, 0)


async def test_new_card_precedes_repetitions_that_are_due(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    channel.failure = DeliveryFailed("HTTP 503")
    failed = await waiting(wiring, "anna")
    await deliver(notifier)
    await make_due(wiring, failed)
    new = await waiting(wiring, "anna")
    now_ms = await wiring.schedule.now_ms()
    assert await wiring.part(CardQueue).due(now_ms) == [new.id, failed.id]


async def test_failed_delivery_asks_the_next_step(wiring: Wiring, notifier: Notifier, channel: MemoryChannel) -> None:
    step = EscalationStep(after_s=200, reviewers=("ben",))
    record = await waiting(wiring, "cleo", escalate=(step,))
    await deliver(notifier)
    await deliver(notifier)
    assert channel.calls == [("send", "B1"), ("send", "B2")]
    assert [one.state for one in await deliveries(wiring, record)] == [DeliveryState.FAILED, DeliveryState.SENT]


async def test_channel_that_breaks_fails_its_delivery_alone(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    broken = MemoryChannel(name="broken", destination="broken.example", failure=KeyError("message_id"))
    notifier.channels = Channels({"memory": channel, "broken": broken})
    terms = RuleTerms(channels=("memory", "broken"), reviewers=("anna",))
    record = await make_pending(wiring, ask(terms=terms))
    with structlog.testing.capture_logs() as logs:
        await deliver(notifier)
        await deliver(notifier)
    assert channel.calls == broken.calls == [("send", "A1")]
    sent, failed = await deliveries(wiring, record)
    assert (sent.state, failed.state) == (DeliveryState.SENT, DeliveryState.FAILED)
    assert failed.reason == "broken.example failed in an unexpected way (KeyError)."
    assert failed.next_try_at_ms is not None
    assert "channel_broke" in {one["event"] for one in logs}


async def test_card_that_was_sent_is_not_sent_again_because_another_attempt_broke(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    notifier.addresses = LostBook(PEOPLE.people)
    record = await waiting(wiring, "anna", "ben")
    await deliver(notifier)
    await deliver(notifier)
    assert channel.calls == [("send", "A1")]
    assert [one.state for one in await deliveries(wiring, record)] == [DeliveryState.QUEUED, DeliveryState.SENT]
    assert await wiring.part(CardQueue).due(await wiring.schedule.now_ms()) == [record.id]


async def test_leased_suspension_is_left_to_its_process(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    record = await waiting(wiring, "anna")
    assert await wiring.part(NamedLeases).hold(f"cards:{record.id}", "other")
    await deliver(notifier)
    assert channel.calls == []
    await wiring.part(NamedLeases).release(f"cards:{record.id}", "other")
    await deliver(notifier)
    assert channel.calls == [("send", "A1")]


async def test_clock_that_went_back_delays_no_card(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel, redis: Redis
) -> None:
    record = await waiting(wiring, "anna")
    await redis.zadd(KEYS.cards, {record.id: 2**45})
    assert await deliver(notifier) == 0
    await wiring.part(CardQueue).bring_forward(await wiring.schedule.now_ms())
    await deliver(notifier)
    assert channel.calls == [("send", "A1")]


async def test_failure_is_logged_without_address(wiring: Wiring, notifier: Notifier, channel: MemoryChannel) -> None:
    channel.failure = DeliveryFailed("HTTP 503")
    record = await waiting(wiring, "anna")
    with structlog.testing.capture_logs() as logs:
        await deliver(notifier)
        channel.failure = None
        await make_due(wiring, record)
        await deliver(notifier)
    assert [one["event"] for one in logs] == ["card_failed", "card_failed_no_longer"]
    assert (logs[0]["channel"], logs[0]["reason"]) == ("memory", "HTTP 503")
    assert "A1" not in repr(logs)


async def test_address_that_is_gone_does_not_keep_others_from_their_update(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    record = await waiting(wiring, "ben")
    await deliver(notifier)
    channel.gone = {"B1"}
    await approve(wiring, record, "ben")
    await deliver(notifier)
    assert (channel.cards["B1"].live, channel.cards["B2"].live) == (True, False)
    (one,) = await deliveries(wiring, record)
    assert (one.reason, one.next_try_at_ms) == ("gone", None)


@dataclass
class PersonalChannel(MemoryChannel):
    """Its addresses belong to hosts of their own."""

    def destination_of(self, address: str) -> str:
        return f"{address}.example"


async def test_host_of_one_person_that_fails_stops_nobody_else(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    own = PersonalChannel()
    notifier.channels = Channels({"memory": own})
    now_ms = await wiring.schedule.now_ms()
    for _ in range(FAILURES_TO_OPEN):
        notifier.gate.breakers.note("A1.example", accepted=False, now_ms=now_ms)
    await waiting(wiring, "anna", "ben")
    await deliver(notifier)
    assert sorted(own.cards) == ["B1", "B2"]


async def test_shared_only_channel_gets_one_card_for_all_reviewers(wiring: Wiring, notifier: Notifier) -> None:
    room = RoomChannel()
    notifier.channels = Channels({"memory": room})
    record = await waiting(wiring, "anna", "ben", escalate=(EscalationStep(after_s=200, reviewers=("cleo",)),))
    await deliver(notifier)
    await deliver(notifier)
    assert room.calls == [("send", "#ops")]
    assert [(one.person, one.state) for one in await deliveries(wiring, record)] == [("", DeliveryState.SENT)]
