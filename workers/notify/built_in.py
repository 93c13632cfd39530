"""Cards of items whose rules name no channel, sent to the browsers that people turned notifications on in.

Such an item has no deliveries of its own: the state of each one is a note of the built-in channel, which lapses a day
after the item's deadline. One process at a time follows the changes, and reads the open items first.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

from sayso.core.clock import DAY_MS
from sayso.core.records.deliveries import CardDelivery, ask_anew
from sayso.core.records.items import Item, list_notified
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deliveries import is_held, needs_attempt
from sayso.errors import NotFound
from service.channels.base import Channel, Recipient
from service.channels.deciding import read_card
from service.channels.kinds import Channels
from service.core.store.channels import ChannelNotes, Subscriptions
from service.core.store.connection.watch import wait_woken
from service.core.store.suspensions.buckets import Buckets
from service.core.wiring import Wiring
from workers.notify.attempts import AddressBook, Attempt, ContactBook, Deferred, Gate, list_unasked
from workers.notify.notifier import listen_by_lease

AGAIN_S = 1.0
MOST_READ = 1_000
"""How many open items are read at the start, and after more changes than are named."""

RECENT_MS = 600_000
"""The age up to which items are sent then: who turns notifications on is not sent all that waits."""


async def keep_built_in(wiring: Wiring, channels: Channels, stopping: asyncio.Event) -> None:
    """Send cards over the built-in channel, if this process has it, until stopped."""
    channel = channels.built_in
    if channel is None:
        return

    async def follow(channel: Channel, wiring: Wiring, ending: asyncio.Event) -> None:
        await BuiltIn(wiring, channel, ContactBook(wiring), Gate(wiring.attempts, wiring.tenant)).follow(ending)

    await listen_by_lease(wiring, channel, follow, stopping)


@dataclass
class BuiltIn:
    """Sends the cards of changed suspensions; `later` holds those with an attempt to come."""

    wiring: Wiring
    channel: Channel
    addresses: AddressBook
    gate: Gate
    later: set[str] = field(default_factory=set)

    async def follow(self, ending: asyncio.Event) -> None:
        """Follow all changes until `ending` is set, or while somebody has turned notifications on."""
        listening = asyncio.create_task(self.wiring.watch.listen())
        try:
            with self.wiring.watch.on(self.wiring.tenant) as changed:
                while not ending.is_set() and await self.wiring.part(Subscriptions).count():
                    await wait_woken(changed, AGAIN_S)
                    names = changed.take()
                    await self.send(self.later | (names or set()))
                    if names is None:
                        await self.send(await self._list_open(), await self.wiring.schedule.now_ms() - RECENT_MS)
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening

    async def send(self, suspension_ids: set[str], since_ms: int = 0) -> None:
        """Make the attempts at the cards of these suspensions; no first one at a card from before `since_ms`."""
        for suspension_id in sorted(suspension_ids):
            self.later.discard(suspension_id)
            with suppress(NotFound):
                record = (await self.wiring.desk.suspensions.read(suspension_id)).record
                for item in record.items:
                    if not item.terms.channels:
                        await self._send_item(record, item, since_ms)

    async def _list_open(self) -> set[str]:
        buckets = self.wiring.part(Buckets)
        facets = await buckets.read(inf)
        wanted = None if facets is None else [one for one, _ in facets]
        return {item.suspension_id for item in await buckets.list_first(wanted, MOST_READ)}

    async def _send_item(self, record: SuspensionRecord, item: Item, since_ms: int) -> None:
        for reviewer in list_notified(item.terms, item.asked_reviewers) or ("",):
            alone = reviewer if reviewer == item.terms.confirm_by else None
            excluded = list_unasked(record, item, reviewer)
            places = await self.addresses.find(self.channel.name, reviewer, record.run.owner)
            for person in dict.fromkeys(
                to.person for to in places if to.person not in excluded and alone in (None, to.person)
            ):
                await self._send_to(record, item, tuple(to for to in places if to.person == person), since_ms)

    async def _send_to(
        self, record: SuspensionRecord, item: Item, places: tuple[Recipient, ...], since_ms: int
    ) -> None:
        person, notes, channel = places[0].person, self.wiring.part(ChannelNotes), self.channel.name
        name = f"card {record.id} {item.item_id} {person}"
        noted = await notes.read(channel, name)
        if noted is None and record.created_at_ms < since_ms:
            return
        fresh = CardDelivery(channel=channel, person=person)
        before = CardDelivery.model_validate_json(noted) if noted else fresh
        if is_held(item, before):  # they were asked before the item was forwarded to them
            queued = fresh.model_copy(update={"stage": item.terms.stage, "forward": len(item.forwards)})
            (before,) = ask_anew((before,), (queued,), item.reminders)
        now_ms = await self.wiring.schedule.now_ms()
        if not needs_attempt(record, item, before):
            return
        if (before.next_try_at_ms or 0) > now_ms:
            self.later.add(record.id)
            return
        card = await read_card(self.wiring, record, item)
        card = card.for_confirmation(person) if person == item.terms.confirm_by else card
        attempt = Attempt(
            self.gate,
            self.addresses,
            self.channel,
            card,
            item,
            before,
            record.run.owner,
            list_unasked(record, item, person),
            record.created_at_ms + item.held_ms,
            now_ms,
        )
        try:
            after = await attempt.follow() if before.proven else await attempt.send_to(places)
        except Deferred:
            self.later.add(record.id)
            return
        if after.next_try_at_ms is not None:
            self.later.add(record.id)
        valid_ms = max(0, item.terms.deadline_at_ms - now_ms) + DAY_MS
        await notes.save(channel, name, after.model_dump_json(), valid_ms)
