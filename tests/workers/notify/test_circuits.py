"""A circuit that opened spares a provider, and its cards are updated once it is back."""

from sayso.core.records.deliveries import DeliveryState
from service.channels.base import DeliveryFailed
from service.core.outgoing.http import FAILURES_TO_OPEN
from service.core.wiring import Wiring
from service.features.operate.diagnostics import Finding, diagnose
from tests.builders import approve
from tests.channels import MemoryChannel
from tests.workers.notify.test_notifier import deliver, deliveries, make_due, waiting
from workers.notify.notifier import Notifier


async def test_open_circuit_fails_new_deliveries_without_an_attempt(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    channel.failure = DeliveryFailed("refused")
    records = [await waiting(wiring, "anna") for _ in range(FAILURES_TO_OPEN + 3)]
    for record in records:
        await notifier._deliver(record.id)
    assert len(channel.calls) == FAILURES_TO_OPEN
    (one,) = await deliveries(wiring, records[-1])
    assert (one.state, one.reason) == (DeliveryState.FAILED, "memory.example keeps failing.")


async def find_circuits(wiring: Wiring) -> list[Finding]:
    found = [one async for one in diagnose(wiring, {"memory": "memory"}) if one.part == "channels"]
    return [one for one in found if "probed" in one.message]


async def test_diagnostics_name_a_destination_that_is_only_probed(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    await notifier.publish_circuits()
    assert await find_circuits(wiring) == []
    channel.failure = DeliveryFailed("refused")
    for _ in range(FAILURES_TO_OPEN):
        await notifier._deliver((await waiting(wiring, "anna")).id)
    await notifier.publish_circuits()
    (found,) = await find_circuits(wiring)
    assert found.message.startswith("memory: memory.example keeps failing, so it is only probed since 20")
    assert found.message.endswith("UTC. refused.")
    assert not found.ok
    notifier.gate.breakers.note("memory.example", accepted=True, now_ms=1)
    await notifier.publish_circuits()
    assert await find_circuits(wiring) == []


async def test_card_loses_its_buttons_after_the_provider_is_back(
    wiring: Wiring, notifier: Notifier, channel: MemoryChannel
) -> None:
    record = await waiting(wiring, "anna")
    await deliver(notifier)
    channel.failure = DeliveryFailed("503")
    await approve(wiring, record)
    await deliver(notifier)
    (one,) = await deliveries(wiring, record)
    assert (one.state, one.reason) == (DeliveryState.SENT, "503"), "what was sent stays sent"
    assert channel.cards["A1"].live
    channel.failure = None
    await make_due(wiring, record)
    await deliver(notifier)
    assert not channel.cards["A1"].live
