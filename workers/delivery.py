"""Delivery of signed messages about decisions, with retries until accepted or expired.

Any number of clocks may run it: each attempt claims its message. After a crash the same message is sent again.
"""

import asyncio
from dataclasses import dataclass, field

import structlog

from sayso.errors import TooManyRequests
from sayso.records.freezes import TIME
from sayso.transitions.freezing import doubt_time
from service.concurrency import Slots
from service.delivery.addresses import UnsafeUrl, host_and_port
from service.delivery.http import Answer
from service.delivery.retries import LONGEST_RETRY_MS, read_retry_after_ms, retry_after_ms
from service.logs import Trouble
from service.operations.instance_deletion import withdraw_all
from service.store.attempts import Allowance
from service.store.deliveries import Waiting
from service.store.instances import Instance
from service.store.suspensions.outbox import RETRY_FOR_MS
from service.wiring import Wiring
from workers.repeating import repeat

TICK_S = 0.1
_BUSY_MS = 1_000
_AT_ONCE = 128
_GRACE_S = 12

BY_INSTANCE = Allowance("aap-messages-by", 600, 60)
TO_PLACE = Allowance("aap-messages-to", 600, 60)

log = structlog.get_logger()


@dataclass
class Courier:
    """Delivers due messages, limited in total, by instance and by place."""

    wiring: Wiring
    slots: Slots = field(default_factory=lambda: Slots(8))
    under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    trouble: Trouble = field(default_factory=lambda: Trouble("delivery_failed"))

    async def deliver_due(self) -> int:
        """Start an attempt at each due message that is not under way here; return their number."""
        now_ms = await self.wiring.schedule.now_ms()
        due = await self.wiring.deliveries.due(now_ms)
        free = max(0, _AT_ONCE - len(self.under_way))
        begun = [name for name in due if name not in self.under_way][:free]
        for name in begun:
            self.under_way[name] = asyncio.create_task(self._attend(name))
        return len(begun)

    async def finish(self) -> None:
        if self.under_way:
            await asyncio.wait(set(self.under_way.values()), timeout=_GRACE_S)

    async def _attend(self, name: str) -> None:
        try:
            if name.startswith("gone:"):
                await withdraw_all(self.wiring, name.removeprefix("gone:"))
            else:
                await self._deliver(name)
        except Exception as error:  # noqa: BLE001  the next tick tries again
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
            return  # claimed since it was listed as due
        await self._attempt(waiting, instance, now_ms)

    async def _jumped_ms(self, waiting: Waiting, now_ms: int) -> int:
        """Return how far the store's clock jumped while the message waited, unless an admin confirmed the jump."""
        known = await self.wiring.freezes.known()
        since_ms = waiting.delivery.until_ms - RETRY_FOR_MS
        jumps = [
            (one.jumped_to_ms or 0, one.at_ms)
            for one in doubt_time(known, self.wiring.freezes.mark_ms(), now_ms)
            if one.scope == TIME and one.deadlines == "move"
        ]
        return sum(to_ms - max(from_ms, since_ms) for to_ms, from_ms in jumps if to_ms > since_ms)

    async def _attempt(self, waiting: Waiting, instance: Instance, now_ms: int) -> None:
        assert instance.delivery is not None  # noqa: S101  the caller has checked
        place = host_and_port(instance.delivery.url)
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
        target, message = instance.delivery, claimed.delivery
        assert target is not None  # noqa: S101  the caller has checked
        try:
            answer = await self.wiring.posts.post(target.url, target.signing_secret, message.id, message.body.encode())
        except UnsafeUrl as error:
            answer = Answer(0, error=error.message)
        now_ms = await self.wiring.schedule.now_ms()
        facts = {"message": message.id, "instance": instance.id, "tries": message.tries, "status": answer.status}
        if answer.accepted:
            await self.wiring.deliveries.end(claimed, "delivered", now_ms)
            log.info("message_delivered", **facts)
            return
        wait_ms = max(retry_after_ms(message.id, message.tries), read_retry_after_ms(answer, now_ms))
        latest_ms = max(message.until_ms, now_ms + LONGEST_RETRY_MS)  # after a clock jump, until_ms may have passed
        await self.wiring.deliveries.postpone(claimed, min(now_ms + wait_ms, latest_ms))
        log.warning("message_not_taken", **facts, error=answer.detail or answer.error, again_in_ms=wait_ms)


async def keep_delivering(wiring: Wiring, stopping: asyncio.Event) -> None:
    """Deliver until stopped; then finish the attempts under way."""
    courier = Courier(wiring)
    await repeat(courier.deliver_due, TICK_S, stopping, "delivering_failed")
    await courier.finish()
