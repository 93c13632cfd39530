"""Tell receivers of decisions: sign each message, post it, try again until it is taken or its time is over.

Beside the clock, in its process. Any number of these do no harm: a message is claimed before it is tried, so that of
all who see it one tries it. What a crash interrupts is tried again, under the same id and with the same body.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from hashlib import sha256

import structlog

from sayso.errors import TooManyRequests
from sayso.records.freezes import TIME
from sayso.transitions.freezing import doubt_time
from service.auth.credentials import TENANT
from service.concurrency import Slots
from service.delivery.addresses import UnsafeUrl
from service.delivery.destinations import place_of
from service.delivery.http import Answer
from service.logs import Trouble
from service.operations.instance_deletion import withdraw_all
from service.store.attempts import Allowance
from service.store.deliveries import Waiting
from service.store.instances import Instance
from service.store.suspensions.outbox import RETRY_FOR_MS
from service.wiring import Wiring

TICK_S = 0.1
FIRST_RETRY_MS = 2_000
LONGEST_RETRY_MS = 3_600_000
_BUSY_MS = 1_000
_AT_ONCE = 128
_GRACE_S = 12
_TOLD_LATER = (429, 503)

BY_INSTANCE = Allowance("aap-messages-by", 600, 60)
TO_PLACE = Allowance("aap-messages-to", 600, 60)

log = structlog.get_logger()


def retry_after_ms(event_id: str, tries: int) -> int:
    """Return how long to wait after so many tries: twice as long each time, up to an hour, less up to a half.

    The part that is left off differs from message to message and from try to try, so that they do not come in crowds.
    """
    longest = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(tries - 1, 30))
    dice = int.from_bytes(sha256(f"{event_id} {tries}".encode()).digest()[:4]) / 2**32
    return int(longest * (1 - dice / 2))


def read_retry_after_ms(answer: Answer, now_ms: int) -> int:
    """Return how long the receiver asks to be left alone, where it does; 0 otherwise."""
    said = (answer.retry_after or "").strip()
    if answer.status not in _TOLD_LATER or not said:
        return 0
    if said.isascii() and said.isdigit():
        return int(said[:9]) * 1000
    with suppress(ValueError, TypeError, OverflowError):
        return max(0, int(parsedate_to_datetime(said).timestamp() * 1000) - now_ms)
    return 0


@dataclass
class Courier:
    """Delivers what is due, some messages at a time; so many an instance and a place."""

    wiring: Wiring
    tenant: str = TENANT
    slots: Slots = field(default_factory=lambda: Slots(8))
    under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    trouble: Trouble = field(default_factory=lambda: Trouble("delivery_failed"))

    async def deliver_due(self) -> int:
        """Begin an attempt at everything that is due now and not under way here; return how many were begun."""
        now_ms = await self.wiring.schedule.now_ms()
        due = await self.wiring.deliveries.due(now_ms)
        free = max(0, _AT_ONCE - len(self.under_way))
        begun = [name for name in due if name not in self.under_way][:free]
        for name in begun:
            task = asyncio.create_task(self._attend(name))
            self.under_way[name] = task
        return len(begun)

    async def finish(self) -> None:
        """Wait until what is under way has ended."""
        if self.under_way:
            await asyncio.wait(set(self.under_way.values()), timeout=_GRACE_S)

    async def _attend(self, name: str) -> None:
        try:
            if name.startswith("gone:"):
                await withdraw_all(self.wiring, name.removeprefix("gone:"))
            else:
                await self._deliver(name)
        except Exception as error:  # noqa: BLE001  the next beat tries again, and says so
            await asyncio.sleep(TICK_S)
            self.trouble.note(error, message=name)
        finally:
            del self.under_way[name]

    async def _deliver(self, event_id: str) -> None:
        waiting = await self.wiring.deliveries.read(event_id)
        now_ms = await self.wiring.schedule.now_ms()
        if waiting is None or waiting.delivery.ended is not None:
            await self.wiring.deliveries.forget(event_id)
            return
        instance = await self.wiring.instances.read(waiting.delivery.endpoint_id)
        if instance is None or instance.delivery is None:
            await self.wiring.deliveries.end(waiting, "nobody to tell", now_ms)
            return
        if now_ms >= waiting.delivery.until_ms + await self._jumped_ms(waiting, now_ms):
            await self.wiring.deliveries.end(waiting, "given up", now_ms)
            log.warning("delivery_given_up", message=event_id, instance=instance.id, tries=waiting.delivery.tries)
            return
        if now_ms < waiting.delivery.not_before_ms:
            return  # somebody has taken it since it was found due
        await self._attempt(waiting, instance, now_ms)

    async def _jumped_ms(self, waiting: Waiting, now_ms: int) -> int:
        """How far the store's clock jumped while the message waits, unless an admin said that the time has gone by."""
        known = await self.wiring.freezes.known()
        since_ms = waiting.delivery.until_ms - RETRY_FOR_MS
        jumps = [
            (one.jumped_to_ms or 0, one.at_ms)
            for one in doubt_time(known, self.wiring.freezes.mark_ms(), now_ms)
            if one.scope == TIME and one.deadlines == "move"
        ]
        return sum(to_ms - max(from_ms, since_ms) for to_ms, from_ms in jumps if to_ms > since_ms)

    async def _attempt(self, waiting: Waiting, instance: Instance, now_ms: int) -> None:
        assert instance.delivery is not None  # noqa: S101  the caller has looked
        place = place_of(instance.delivery.url)
        with self.slots.take((f"instance {instance.id}", f"place {place}")) as free:
            if not free:
                await self.wiring.deliveries.defer(waiting.delivery.id, now_ms + _BUSY_MS)
                return
            try:
                await self.wiring.attempts.count(BY_INSTANCE, instance.id)
                await self.wiring.attempts.count(TO_PLACE, place)
            except TooManyRequests as error:
                wait_s = int(str(error.facts.get("retry_after_s", 1)))
                await self.wiring.deliveries.defer(waiting.delivery.id, now_ms + wait_s * 1000)
                return
            claimed = await self.wiring.deliveries.claim(waiting, now_ms)
            if claimed is not None:
                await self._post(claimed, instance)

    async def _post(self, claimed: Waiting, instance: Instance) -> None:
        told, message = instance.delivery, claimed.delivery
        assert told is not None  # noqa: S101  the caller has looked
        try:
            answer = await self.wiring.posts.post(told.url, told.signing_secret, message.id, message.body.encode())
        except UnsafeUrl as error:
            answer = Answer(0, error=error.message)
        now_ms = await self.wiring.schedule.now_ms()
        facts = {"message": message.id, "instance": instance.id, "tries": message.tries, "status": answer.status}
        if answer.accepted:
            await self.wiring.deliveries.end(claimed, "delivered", now_ms)
            log.info("message_delivered", **facts)
            return
        wait_ms = max(retry_after_ms(message.id, message.tries), read_retry_after_ms(answer, now_ms))
        latest_ms = max(message.until_ms, now_ms + LONGEST_RETRY_MS)  # where the clock jumped, the end has passed
        await self.wiring.deliveries.postpone(claimed, min(now_ms + wait_ms, latest_ms))
        log.warning("message_not_taken", **facts, error=answer.detail or answer.error, again_in_ms=wait_ms)


async def keep_delivering(wiring: Wiring, stopping: asyncio.Event) -> None:
    """Deliver until told to stop, through any absence of the store; then let what is under way end."""
    courier, trouble = Courier(wiring), Trouble("delivering_failed")
    while not stopping.is_set():
        try:
            await courier.deliver_due()
            trouble.over()
        except Exception as error:  # noqa: BLE001  this outlives whatever is wrong, and says so
            trouble.note(error)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), TICK_S)
    await courier.finish()
