"""Cards follow their items soon after a crash, and what was sent in an outage of the store is known."""

from collections.abc import AsyncIterator

import pytest
import structlog
from redis.asyncio import Redis

from sayso.core.records.deliveries import DeliveryState
from service.channels.base import Recipient
from service.channels.cards import Card
from service.channels.kinds import Channels
from service.core.store.attempts import NamedLeases
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from tests.channels import MemoryChannel
from tests.waits import until
from tests.workers.notify.conftest import PEOPLE
from tests.workers.notify.test_notifier import deliver, deliveries, waiting
from workers.notify.attempts import Gate
from workers.notify.notifier import LEASE_MS, Notifier


@pytest.fixture
async def store(clean_store_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(clean_store_url) as client:
        yield client
        await client.config_set("min-replicas-to-write", 0)


def notify_over(wiring: Wiring, channel: MemoryChannel) -> Notifier:
    return Notifier(wiring, Channels({"memory": channel}), PEOPLE, Gate(wiring.attempts))


async def test_cards_of_a_crashed_process_are_free_again_soon(wiring: Wiring) -> None:
    channel = MemoryChannel()
    notifier, record = notify_over(wiring, channel), await waiting(wiring, "anna")
    assert await wiring.part(NamedLeases).hold(f"cards:{record.id}", "crashed", LEASE_MS)

    async def sent() -> bool:
        await deliver(notifier)
        return bool(channel.calls)

    await until(sent)
    assert channel.calls == [("send", "A1")]


async def test_lease_is_renewed_while_an_attempt_is_under_way(wiring: Wiring, store: Redis) -> None:
    notifier, record = notify_over(wiring, MemoryChannel(hangs=True)), await waiting(wiring, "anna")
    lease = TenantKeys("default").lease(f"cards:{record.id}")
    await notifier.deliver_due()

    async def held() -> bool:
        return bool(await store.exists(lease))

    await until(held)
    await store.pexpire(lease, LEASE_MS - 500)

    async def renewed() -> bool:
        return int(await store.pttl(lease)) > LEASE_MS - 500

    await until(renewed)
    notifier.under_way[record.id].cancel()


async def test_card_sent_in_an_outage_of_the_store_is_known_afterwards(wiring: Wiring, store: Redis) -> None:
    class Refusing(MemoryChannel):
        """Has the store refuse writes while it sends."""

        async def send(self, to: Recipient, card: Card, event_id: str) -> str:
            await store.config_set("min-replicas-to-write", 1)
            return await super().send(to, card, event_id)

    channel = Refusing()
    notifier, record = notify_over(wiring, channel), await waiting(wiring, "anna")
    with structlog.testing.capture_logs() as logs:
        await notifier.deliver_due()

        async def refused() -> bool:
            return any(one["event"] == "card_not_delivered" for one in logs)

        await until(refused)
    await store.config_set("min-replicas-to-write", 0)
    await notifier.finish()
    (one,) = await deliveries(wiring, record)
    assert (one.state, one.references) == (DeliveryState.SENT, {"A1": "m1"})
    assert channel.calls == [("send", "A1")]
