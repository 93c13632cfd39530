"""Attempts at one delivery of one card: finding people's addresses, sending it, updating it and reminding them."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import structlog

from sayso.core.clock import iso_utc, now_ms
from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deliveries import is_asked
from sayso.errors import TooManyRequests
from sayso.wire.people import Preferences
from service.channels.base import Channel, DeliveryFailed, Recipient, SendsDigests, SharedOnly, destination_of
from service.channels.cards import Card
from service.core.auth.duty import find_quiet_hold, is_quiet, joins_digest
from service.core.cache import Cache
from service.core.concurrency import Slots
from service.core.outgoing.http import PROBE_EVERY_MS, Breakers, event_retry_after_ms, retry_after_ms
from service.core.settings.limits import TENANT
from service.core.store.attempts import Allowance, Attempts
from service.core.wiring import Wiring
from service.features.people.who import find_preferences, list_present
from workers.notify.interruptions import Digests, Interruptions

_MOST = 10_000
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True)
class ContactBook:
    """The linked addresses of a tenant's active reviewers, each as of less than a second ago."""

    wiring: Wiring
    recipients: dict[tuple[str, str, str], Cache[tuple[Recipient, ...]]] = field(default_factory=dict)
    preferences: dict[tuple[str, ...], Cache[Preferences]] = field(default_factory=dict)

    async def find_preferences(self, person: str, reviewers: Sequence[str]) -> Preferences:
        """Return how a person is notified whom these reviewers include."""
        key = (person, *reviewers)
        return await _recall(self.preferences, key, partial(find_preferences, self.wiring, person, reviewers))

    async def find(self, channel: str, person: str, requester: str = "") -> tuple[Recipient, ...]:
        """Return the addresses of a person, of a group or, without a name, of everybody; delegates stand in."""

        async def read() -> tuple[Recipient, ...]:
            recipients: list[Recipient] = []
            for name in await list_present(self.wiring, person, now_ms(), requester):
                addresses = await self.wiring.contacts.addresses_of(name, channel)
                recipients += [Recipient(name, address) for address in addresses]
            return tuple(recipients)

        return await _recall(self.recipients, (channel, person, requester), read)


async def _recall(known: dict[Key, Cache[Value]], key: Key, read: Callable[[], Awaitable[Value]]) -> Value:
    if key not in known and len(known) >= _MOST:
        known.clear()
    return await known.setdefault(key, Cache(read)).find()


ATTEMPT_S = 15.0
_PER_DESTINATION = 16
_BUSY_MS = 500
_LOG = structlog.get_logger(__name__)
_CLEARED = {"tries": 0, "reason": None, "next_try_at_ms": None, "off_duty": False}

Result = TypeVar("Result")


class AddressBook(Protocol):
    """Addresses of people on channels, and how they want to be notified; see `ContactBook`."""

    async def find_preferences(self, person: str, reviewers: Sequence[str]) -> Preferences: ...

    async def find(self, channel: str, person: str, requester: str = "") -> tuple[Recipient, ...]: ...


class Deferred(Exception):
    """No attempt was made: the destination is busy, or its circuit is open."""

    def __init__(self, wait_ms: int) -> None:
        super().__init__(f"again in {wait_ms} ms")
        self.wait_ms = wait_ms


@dataclass
class Gate:
    """The limits of each destination: attempts at once and a minute, and its circuit breaker."""

    attempts: Attempts
    tenant: str = TENANT
    digests: Digests = field(default_factory=Digests)
    slots: Slots = field(default_factory=lambda: Slots(_PER_DESTINATION))
    breakers: Breakers = field(default_factory=Breakers)

    @property
    def interruptions(self) -> Interruptions:
        return Interruptions(self.attempts, self.tenant)

    async def run(
        self, channel: Channel, to: Recipient, now_ms: int, call: Callable[[], Awaitable[Result]], *, first: bool
    ) -> Result:
        """Call the provider within the limits; raises `Deferred`, or `DeliveryFailed` if `first` would wait long."""
        destination = destination_of(channel, to)
        wait_ms = self.breakers.wait_ms(destination, now_ms)
        if wait_ms and first:
            raise DeliveryFailed(f"{destination} keeps failing.")
        if wait_ms:
            raise Deferred(wait_ms)
        with self.slots.take((destination,)) as free:
            if not free:
                raise Deferred(_BUSY_MS)
            try:
                await self.attempts.count(Allowance("channel", channel.per_minute, 60), destination)
            except TooManyRequests as error:
                raise Deferred(int(str(error.facts.get("retry_after_s", 1))) * 1000) from error
            return await self._call(channel.name, destination, now_ms, call)

    async def _call(self, channel: str, destination: str, now_ms: int, call: Callable[[], Awaitable[Result]]) -> Result:
        try:
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    result = await call()
            except TimeoutError:
                raise DeliveryFailed(f"{destination} did not respond within {ATTEMPT_S:g} s.") from None
            except DeliveryFailed:
                raise
            except Exception as error:
                _LOG.exception("channel_broke", destination=destination)
                fault = f"{destination} failed in an unexpected way ({type(error).__name__})."
                raise DeliveryFailed(fault) from error
        except DeliveryFailed as failure:
            if not failure.permanent:
                self.breakers.note(destination, accepted=False, now_ms=now_ms, channel=channel, reason=failure.reason)
            raise
        self.breakers.note(destination, accepted=True, now_ms=now_ms)
        return result


def list_unasked(record: SuspensionRecord, item: Item, person: str) -> tuple[str, ...]:
    """Return who gets no card of a delivery to this person: who may not decide, except who confirms the call."""
    return tuple(
        name for name in record.run.list_excluded(item.terms) if name != item.terms.confirm_by or name != person
    )


@dataclass(frozen=True)
class Attempt:
    """One delivery of an item's card over its channel, as of `now_ms`.

    The people `excluded` by its terms are not asked, nor is a delegate through the `requester`. `since_ms` is when the
    item began to wait.
    """

    gate: Gate
    addresses: AddressBook
    channel: Channel
    card: Card
    item: Item
    delivery: CardDelivery
    requester: str
    excluded: tuple[str, ...]
    since_ms: int
    now_ms: int

    async def send(self) -> tuple[CardDelivery, ...]:
        """Send the card to everybody behind the delivery; return one delivery for each person. Raises `Deferred`."""
        if self.delivery.person and isinstance(self.channel, SharedOnly):
            return (self.delivery.model_copy(update={"person": ""}),)  # one card replaces those of all reviewers
        if not self.delivery.person and self.channel.shared_address:
            return (await self.send_to((Recipient("", self.channel.shared_address),)),)
        known = await self.addresses.find(self.channel.name, self.delivery.person, self.requester)
        alone = self.delivery.person if self.delivery.person == self.item.terms.confirm_by else None
        recipients = tuple(to for to in known if to.person not in self.excluded and alone in (None, to.person))
        people = tuple(dict.fromkeys(recipient.person for recipient in recipients))
        if not people:
            who = self.delivery.person or "Nobody"
            return (fail(self.delivery, f"{who} has no address on {self.channel.name}.", None),)
        if people == (self.delivery.person,):
            return (await self.send_to(recipients),)
        places = ([to for to in recipients if to.person == name] for name in people)
        return tuple(await asyncio.gather(*map(self._try_send, places)))

    async def follow(self) -> CardDelivery:
        """Update a card at every address, and remind its recipient if that is due. Raises `Deferred`."""
        failure: DeliveryFailed | None = None
        for address, reference in self.delivery.references.items():
            try:
                await self._follow_at(Recipient(self.delivery.person, address), reference)
            except DeliveryFailed as error:
                failure = error if failure is None or failure.permanent else failure
        if failure is not None and not failure.permanent:
            # A closed item must lose its buttons soon after its provider is back, so the wait does not grow.
            again_at_ms = self.now_ms + max(PROBE_EVERY_MS, int(failure.retry_after_s * 1000))
            update = {"tries": self.delivery.tries + 1, "reason": failure.reason, "next_try_at_ms": again_at_ms}
            return self.delivery.model_copy(update=update)
        done = {"shown": self.card.version, "reminded": self.item.reminders, **_CLEARED}
        return self.delivery.model_copy(update={**done, "reason": failure.reason if failure is not None else None})

    async def _follow_at(self, to: Recipient, reference: str) -> None:
        if self.delivery.shown != self.card.version:
            await self._run(to, partial(self.channel.update, to, reference, self.card))
        past = not is_asked(self.item, self.delivery)
        if not self.card.live or past or self.delivery.reminded >= self.item.reminders or self._has_decided():
            return
        held = self.delivery.person and not self.item.terms.urgent
        if held and is_quiet(await self._find_preferences(self.delivery.person), self.now_ms):
            return  # the person's hours skip a reminder
        await self._run(to, partial(self.channel.remind, to, reference, self.card, self._event_id(to, "remind")))

    def _has_decided(self) -> bool:
        """Whether this person is asked no longer: they have decided, or their decision lapsed after any forward."""
        asked_ms = self.item.forwarded.at_ms if self.item.forwarded is not None else 0
        voided = (decision for decision in self.item.voided if not decision.retracted)
        lapsed = {decision.by.id for decision in voided if decision.voided_at_ms >= asked_ms}
        return self.delivery.person in lapsed.union(decision.by.id for decision in self.item.decisions)

    async def _find_preferences(self, person: str) -> Preferences:
        reviewers = self.item.reviewers_of(self.delivery)
        return await self.addresses.find_preferences(person, reviewers) if person else Preferences()

    async def _try_send(self, places: Sequence[Recipient]) -> CardDelivery:
        """Send to one person of many; a deferred person stays queued without holding up the others."""
        try:
            return await self.send_to(places)
        except Deferred as deferred:
            update = {"person": places[0].person, "next_try_at_ms": self.now_ms + deferred.wait_ms}
            return self.delivery.model_copy(update=update)

    async def send_to(self, places: Sequence[Recipient]) -> CardDelivery:
        """Send the card to every address of one person; one success is enough. Raises `Deferred`."""
        base = self.delivery.model_copy(update={"person": places[0].person})
        preferences = await self._find_preferences(base.person)
        held = await self._find_hold(base, preferences)
        if held is not None:
            return held
        digest = joins_digest(preferences, self.since_ms, self.now_ms)
        together = digest and not (self.item.terms.urgent or base.outcome)
        references: dict[str, str] = {}
        sent = 0
        failure: DeliveryFailed | None = None
        for to in places:
            try:
                event_id = self._event_id(to, "outcome" if base.outcome else "send")
                if together and isinstance(self.channel, SendsDigests):
                    await self._join_digest(self.channel, to, event_id)
                else:
                    references[to.address] = await self._run(to, partial(self.channel.send, to, self.card, event_id))
                sent += 1
            except DeliveryFailed as error:
                failure = error
        if not sent and failure is not None:
            return fail(base, failure.reason, self._next_try_ms(base, failure))
        update = {
            "state": DeliveryState.SENT,
            "sent_at_ms": self.now_ms,
            "references": references,
            "shown": self.card.version,
            "reminded": self.item.reminders,
        }
        return base.model_copy(update={**update, **_CLEARED})

    async def _find_hold(self, base: CardDelivery, preferences: Preferences) -> CardDelivery | None:
        """Return the delivery as it waits, or as failed because it would wait past the deadline; None to send now."""
        if not base.person or base.tries:
            return None
        if base.outcome:
            hold = None if self.item.terms.urgent else find_quiet_hold(preferences, self.now_ms)
        else:
            hold = await self.gate.interruptions.find_hold(
                base.person, preferences, self.item, self.since_ms, self.now_ms
            )
        if hold is None:
            return None
        reason = f"Held until {iso_utc(hold.until_ms)}: {hold.reason} of {base.person}."
        if not base.outcome and hold.until_ms >= self.item.terms.deadline_at_ms:
            return fail(base, f"{reason} That is after the deadline.", hold.until_ms)
        return base.model_copy(update={"reason": reason, "next_try_at_ms": hold.until_ms, "off_duty": hold.off_duty})

    async def _join_digest(self, channel: SendsDigests, to: Recipient, event_id: str) -> None:
        async def flush(cards: tuple[Card, ...], digest_id: str) -> None:
            await self._run(to, partial(channel.send_digest, to, cards, digest_id))

        await self.gate.digests.join(self.channel.name, to, self.card, event_id, flush)

    async def _run(self, to: Recipient, call: Callable[[], Awaitable[Result]]) -> Result:
        first = self.delivery.state is DeliveryState.QUEUED
        return await self.gate.run(self.channel, to, self.now_ms, call, first=first)

    def _event_id(self, to: Recipient, what: str) -> str:
        forward = f":{self.delivery.forward}" if self.delivery.forward else ""
        return f"{self.card.suspension_id}:{self.card.item_id}:{what}:{self.item.reminders}{forward}:{to.address}"

    def _next_try_ms(self, delivery: CardDelivery, failure: DeliveryFailed) -> int | None:
        name = f"{self.card.suspension_id} {self.card.item_id} {delivery.channel} {delivery.person}"
        tries = delivery.tries + 1
        wait_ms = event_retry_after_ms(name, tries) if delivery.outcome else retry_after_ms(name, tries)
        if failure.permanent or wait_ms is None:
            return None
        return self.now_ms + max(wait_ms, int(failure.retry_after_s * 1000))


def fail(delivery: CardDelivery, reason: str, next_try_at_ms: int | None) -> CardDelivery:
    """Return the delivery after a failed attempt; without a next try the failure is final."""
    update = {"state": DeliveryState.FAILED, "tries": delivery.tries + 1, "reason": reason, "off_duty": False}
    return delivery.model_copy(update={**update, "next_try_at_ms": next_try_at_ms})
