"""Delivery of the cards of due suspensions, each until its provider accepts it.

The commit of a suspension lists it if one of its deliveries needs an attempt. A process leases it, compares each
delivery with the item, and saves the results in one commit. After a crash the same attempts are made again. Channels
that are polled or keep a socket open have a listener in one process at a time.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from sayso.core.clock import new_id
from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deliveries import needs_attempt
from sayso.errors import NotFound, Unavailable
from service.channels.base import Channel, DeliveryFailed, SharedOnly
from service.channels.cards import Card
from service.channels.deciding import read_card
from service.channels.kinds import KINDS, Channels, Listen
from service.core.logs import Trouble
from service.core.store.attempts import NamedLeases
from service.core.store.channels import CardQueue, ChannelNotes
from service.core.wiring import Wiring
from service.features.operate.diagnostics import save_circuits
from workers import repeat
from workers.notify.attempts import AddressBook, Attempt, Deferred, Gate, fail, list_unasked
from workers.notify.invitations import send_invitation

TICK_S = 0.1
PUBLISH_EVERY_S = 5.0
_AT_ONCE = 128
_AGAIN_MS = 500
_GRACE_S = 20
LEASE_MS = 3_000
"""How long one process holds a suspension's cards without renewal; after a crash another may send them again."""


@dataclass
class Notifier:
    """Delivers the cards of due suspensions."""

    wiring: Wiring
    channels: Channels
    addresses: AddressBook
    gate: Gate
    under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    trouble: Trouble = field(default_factory=lambda: Trouble("card_not_delivered"))
    failing: dict[str, Trouble] = field(default_factory=lambda: defaultdict(lambda: Trouble("card_failed")))
    holder: str = field(default_factory=lambda: new_id("notifier"))
    published: set[str] = field(default_factory=set)

    async def deliver_due(self) -> int:
        """Start the attempts of each due suspension that is not under way here; return their number."""
        due = await self.wiring.part(CardQueue).due(await self.wiring.schedule.now_ms())
        begun = [id_ for id_ in due if id_ not in self.under_way][: max(0, _AT_ONCE - len(self.under_way))]
        for suspension_id in begun:
            self.under_way[suspension_id] = asyncio.create_task(self._attend(suspension_id))
        return len(begun)

    async def publish_circuits(self) -> None:
        """Save which destinations are only probed, for the diagnostics; the notes lapse with this process."""
        circuits = self.gate.breakers.list_open()
        for channel in {*circuits, *self.published}:
            await save_circuits(self.wiring.part(ChannelNotes), channel, circuits.get(channel, []))
        self.published = {*circuits}

    async def finish(self) -> None:
        """Wait for the attempts under way, up to `_GRACE_S`."""
        if self.under_way:
            await asyncio.wait(set(self.under_way.values()), timeout=_GRACE_S)

    async def _attend(self, suspension_id: str) -> None:
        lease = f"cards:{suspension_id}"
        try:
            if await self.wiring.part(NamedLeases).hold(lease, self.holder, LEASE_MS):
                renewing = asyncio.create_task(self._keep_lease(lease))
                try:
                    await self._deliver(suspension_id)
                finally:
                    renewing.cancel()
                    await self.wiring.part(NamedLeases).release(lease, self.holder)
        except Exception as error:  # noqa: BLE001  the next tick tries again
            self.trouble.note(error, suspension=suspension_id)
            await asyncio.sleep(TICK_S)
        finally:
            del self.under_way[suspension_id]

    async def _keep_lease(self, lease: str) -> None:
        """Renew the lease until cancelled. It is short, so that cards follow their items soon after a crash."""
        while True:
            await asyncio.sleep(LEASE_MS / 3_000)
            with suppress(Unavailable):
                await self.wiring.part(NamedLeases).hold(lease, self.holder, LEASE_MS)

    async def _save(self, suspension_id: str, reports: Sequence[DeliveryReport]) -> None:
        """Save the results of attempts, through an outage of the store: they name cards that nothing else knows."""
        while True:
            try:
                await self.wiring.desk.record_deliveries(suspension_id, reports)
                return
            except Unavailable as error:
                self.trouble.note(error, suspension=suspension_id)
                await asyncio.sleep(TICK_S)

    async def _deliver(self, suspension_id: str) -> None:
        try:
            record = (await self.wiring.desk.suspensions.read(suspension_id)).record
        except NotFound:
            await self.wiring.part(CardQueue).forget(suspension_id)
            return
        now_ms = await self.wiring.schedule.now_ms()
        due = [
            (item, delivery)
            for item in record.items
            for delivery in item.deliveries
            if needs_attempt(record, item, delivery) and (delivery.next_try_at_ms or 0) <= now_ms
        ]
        items = {item.item_id: item for item, _ in due}
        cards = {name: await read_card(self.wiring, record, item) for name, item in items.items()}
        results = await asyncio.gather(
            *(self._attempt(record, item, delivery, cards[item.item_id], now_ms) for item, delivery in due),
            return_exceptions=True,
        )
        reports = [result for result in results if isinstance(result, DeliveryReport)]
        waits_ms = [result for result in results if isinstance(result, int)]
        if reports:
            await self._save(suspension_id, reports)
            self._log(suspension_id, reports)
        for result in results:
            if isinstance(result, BaseException):
                raise result  # after the others' results are saved: their cards must not be sent again
        if waits_ms or not due:
            await self.wiring.part(CardQueue).defer(suspension_id, now_ms + min(waits_ms, default=_AGAIN_MS))

    def _log(self, suspension_id: str, reports: Sequence[DeliveryReport]) -> None:
        """Log when a channel begins and ceases to fail, with the reason and no address."""
        for report in reports:
            for delivery in report.became:
                trouble = self.failing[delivery.channel]
                if delivery.reason is not None and delivery.state is not DeliveryState.QUEUED:
                    failed = DeliveryFailed(delivery.reason)
                    place = {"channel": delivery.channel, "suspension": suspension_id, "item": report.item_id}
                    trouble.note(failed, reason=delivery.reason, **place)
                elif delivery.proven:
                    trouble.over()

    async def _attempt(
        self, record: SuspensionRecord, item: Item, delivery: CardDelivery, card: Card, now_ms: int
    ) -> DeliveryReport | int:
        """Return the report of a delivery's attempts, or the wait in ms if none could be made."""
        if delivery.outcome and not delivery.proven:
            return await self._send_outcome(record, item, delivery, card, now_ms)
        channel = self.channels.find(delivery.channel)
        if delivery.invitation:
            place = (self.wiring, self.gate, channel, record, item, delivery, now_ms)
            try:
                return DeliveryReport(item.item_id, delivery.key, (await send_invitation(*place),))
            except Deferred as deferred:
                return deferred.wait_ms
        if channel is None:
            failed = fail(delivery, f"There is no channel named {delivery.channel}.", None)
            return DeliveryReport(item.item_id, delivery.key, (failed,))
        attempt = self._prepare(record, item, delivery, channel, card, now_ms)
        try:
            became = (await attempt.follow(),) if delivery.proven else await attempt.send()
        except Deferred as deferred:
            return deferred.wait_ms
        return DeliveryReport(item.item_id, delivery.key, became)

    async def _send_outcome(
        self, record: SuspensionRecord, item: Item, delivery: CardDelivery, card: Card, now_ms: int
    ) -> DeliveryReport | int:
        """Notify the requester on the rule's first channel where they have an address; nobody without any."""
        for name in item.terms.channels:
            channel = self.channels.find(name)
            if channel is None or isinstance(channel, SharedOnly):
                continue
            recipients = await self.addresses.find(name, record.run.owner)
            if not recipients:
                continue
            there = delivery.model_copy(update={"channel": name})
            attempt = self._prepare(record, item, there, channel, card, now_ms)
            try:
                return DeliveryReport(item.item_id, delivery.key, (await attempt.send_to(recipients),))
            except Deferred as deferred:
                return deferred.wait_ms
        return DeliveryReport(item.item_id, delivery.key, ())

    def _prepare(
        self, record: SuspensionRecord, item: Item, delivery: CardDelivery, channel: Channel, card: Card, now_ms: int
    ) -> Attempt:
        card = card.for_confirmation(delivery.person) if delivery.person == item.terms.confirm_by else card
        owner, excluded = record.run.owner, list_unasked(record, item, delivery.person)
        since_ms = record.created_at_ms + item.held_ms
        return Attempt(self.gate, self.addresses, channel, card, item, delivery, owner, excluded, since_ms, now_ms)


async def keep_notifying(wiring: Wiring, channels: Channels, addresses: AddressBook, stopping: asyncio.Event) -> None:
    """Deliver cards until stopped; then finish the attempts under way."""
    notifier = Notifier(wiring, channels.attach(wiring), addresses, Gate(wiring.attempts, wiring.tenant))
    publishing = asyncio.create_task(
        repeat(notifier.publish_circuits, PUBLISH_EVERY_S, stopping, "circuits_not_published")
    )
    await repeat(notifier.deliver_due, TICK_S, stopping, "notifying_failed")
    await publishing
    await notifier.finish()


RENEW_S = 5.0


async def keep_listening(wiring: Wiring, channels: Channels, stopping: asyncio.Event) -> None:
    """Listen to every channel that has a listener, until stopped."""
    known = (channel for channel in channels.by_name.values() if channel.kind in KINDS)
    pairs = ((channel, KINDS[channel.kind].listen) for channel in known)
    holding = (listen_by_lease(wiring, channel, listen, stopping) for channel, listen in pairs if listen is not None)
    await asyncio.gather(*holding)


async def listen_by_lease(
    wiring: Wiring, channel: Channel, listen: Listen, stopping: asyncio.Event, renew_s: float = RENEW_S
) -> None:
    """Listen while this process holds the channel's lease; start again after an error."""
    step = partial(_hold, wiring, channel, listen, new_id("listener"), stopping, renew_s)
    await repeat(step, renew_s, stopping, "listening_failed")


async def _hold(
    wiring: Wiring, channel: Channel, listen: Listen, holder: str, stopping: asyncio.Event, renew_s: float
) -> None:
    """Listen until the lease is lost, the listener ends, or `stopping` is set; raises the listener's error."""
    name = f"listen:{channel.name}"
    if not await wiring.part(NamedLeases).hold(name, holder):
        return
    ending = asyncio.Event()
    listening = asyncio.create_task(listen(channel, wiring, ending))
    stopped = asyncio.create_task(stopping.wait())
    try:
        while not listening.done() and not stopped.done():
            await asyncio.wait({listening, stopped}, timeout=renew_s, return_when=asyncio.FIRST_COMPLETED)
            if not await wiring.part(NamedLeases).hold(name, holder):
                return
        if listening.done():
            listening.result()
    finally:
        ending.set()
        stopped.cancel()
        listening.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await listening
        await wiring.part(NamedLeases).release(name, holder)
