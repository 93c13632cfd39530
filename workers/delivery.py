"""Delivery of signed messages, with retries until accepted or expired.

Each endpoint has a lane of its own: a few attempts at once while it answers quickly, one after a failure, and probes
alone while its circuit is open. So an endpoint delays nobody but itself. Any number of clocks may run it: each attempt
claims its message. After a crash the same message is sent again.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from sayso.core.clock import HOUR_MS, monotonic_ms
from sayso.core.records.freezes import TIME
from sayso.core.transitions.freezing import doubt_time
from sayso.errors import SaysoError, TooManyRequests, Unreadable
from service.core.concurrency import Slots
from service.core.logs import Trouble
from service.core.operations.runs import withdraw_all
from service.core.outgoing.connections import UnsafeUrl, host_and_port
from service.core.outgoing.http import (
    EVENTS_RETRY_FOR_MS,
    LONGEST_ASKED_MS,
    LONGEST_RETRY_MS,
    Answer,
    Breakers,
    event_retry_after_ms,
    read_retry_after_ms,
    retry_after_ms,
)
from service.core.store.announcements import LANE, RETRY_FOR_MS, Delivery, find_suspension_id
from service.core.store.attempts import Allowance
from service.core.store.deliveries import CLAIM_MS, DELIVERED, Deliveries, Waiting
from service.core.store.instances import Instances
from service.core.wiring import Wiring
from service.features.webhooks.store import ENDPOINT_PREFIX, Endpoints, list_valid
from workers import repeat

BY_INSTANCE = Allowance("aap-messages-by", 600, 60)
TO_PLACE = Allowance("aap-messages-to", 600, 60)
GONE = 410


@dataclass(frozen=True)
class Target:
    """The receiver of a lane's messages. With a `refusal` nothing is sent, and the messages fail with that reason."""

    endpoint_id: str
    url: str
    secrets: tuple[str, ...]
    refusal: str = ""
    limits: tuple[tuple[Allowance, str], ...] = ()

    @property
    def is_endpoint(self) -> bool:
        return self.endpoint_id.startswith(ENDPOINT_PREFIX)

    @property
    def places(self) -> tuple[str, ...]:
        """What attempts at several instances share, so that provisioners cannot flood a host."""
        return () if self.is_endpoint else (host_and_port(self.url),)

    @property
    def retry_for_ms(self) -> int:
        return EVENTS_RETRY_FOR_MS if self.is_endpoint else RETRY_FOR_MS

    def find_next_ms(self, message: Delivery, requested_ms: int, now_ms: int) -> int | None:
        """Return when to send a refused message again, as its receiver requests or later; None after the last try."""
        if self.is_endpoint:
            wait_ms = event_retry_after_ms(message.id, message.tries)
            return None if wait_ms is None else now_ms + max(wait_ms, min(requested_ms, LONGEST_ASKED_MS))
        wait_ms = max(retry_after_ms(message.id, message.tries), requested_ms)
        # After a clock jump, until_ms may have passed.
        return min(now_ms + wait_ms, max(message.until_ms, now_ms + LONGEST_RETRY_MS))


async def find_target(wiring: Wiring, endpoint_id: str, now_ms: int) -> Target | None:
    """Return the receiver of a lane, or None if it was deleted or wants no messages."""
    if not endpoint_id.startswith(ENDPOINT_PREFIX):
        instance = await wiring.part(Instances).read(endpoint_id)
        if instance is None or instance.delivery is None:
            return None
        url = instance.delivery.url
        limits = ((BY_INSTANCE, instance.id), (TO_PLACE, host_and_port(url)))
        return Target(instance.id, url, (instance.delivery.signing_secret,), limits=limits)
    endpoint = await wiring.part(Endpoints).find(endpoint_id)
    if endpoint is None:
        return None
    refusal = "" if endpoint.state == "active" else f"The endpoint is {endpoint.state}. {endpoint.reason}".strip()
    return Target(endpoint.id, endpoint.url, tuple(list_valid(endpoint.secrets, now_ms)), refusal)


TICK_S = 0.1
_BUSY_MS = 1_000
_SKIPPED = -1  # what `_deliver` returns for a message that another process has
_MOST_LISTED = 1_000
_LANES_AT_ONCE = 500
_FAILING_AT_ONCE = 250
_MOST_AT_ONCE = 8
_MOST_TO_ENDPOINT = 64  # at once: 100 a second to a receiver that takes half a second
_QUICK_MS = 2_000
_LONGEST_BLOCK_MS = HOUR_MS
_GRACE_S = 12

log = structlog.get_logger()


@dataclass
class Lane:
    """What this process knows of an endpoint: how many attempts it gets at once, and when the next one may be made."""

    at_once: int = 1
    blocked_until_ms: int = 0


@dataclass
class Courier:
    """Delivers due messages, lane by lane."""

    wiring: Wiring
    slots: Slots = field(default_factory=lambda: Slots(_MOST_AT_ONCE))
    breakers: Breakers = field(default_factory=Breakers)
    lanes: dict[str, Lane] = field(default_factory=dict)
    under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    trouble: Trouble = field(default_factory=lambda: Trouble("delivery_failed"))
    closing: bool = False

    async def deliver_due(self) -> int:
        """Start to deliver the due messages of each lane that is not under way here; return the number of lanes."""
        now_ms = await self.wiring.schedule.now_ms()
        due = await self.wiring.part(Deliveries).due(now_ms, _MOST_LISTED)
        begun = self._choose([name for name in due if name not in self.under_way])
        for name in begun:
            self.under_way[name] = asyncio.create_task(self._attend(name))
        return len(begun)

    async def finish(self) -> None:
        """Wait for the lanes under way, up to `_GRACE_S`."""
        if self.under_way:
            await asyncio.wait(set(self.under_way.values()), timeout=_GRACE_S)

    def _choose(self, due: list[str]) -> list[str]:
        """Return the lanes to start: failing ones never take all places."""
        failing = sum(map(self._is_failing, self.under_way))
        chosen: list[str] = []
        for name in due:
            if len(self.under_way) + len(chosen) >= _LANES_AT_ONCE:
                break
            if self._is_failing(name):
                if failing >= _FAILING_AT_ONCE:
                    continue
                failing += 1
            chosen.append(name)
        return chosen

    def _is_failing(self, name: str) -> bool:
        return self.breakers.is_failing(name.removeprefix(LANE))

    async def _attend(self, name: str) -> None:
        try:
            if name.startswith("gone:"):
                await withdraw_all(self.wiring, name.removeprefix("gone:"))
            elif name.startswith(LANE):
                await self._empty(name.removeprefix(LANE))
            else:
                await self.wiring.part(Deliveries).adopt(name, await self.wiring.schedule.now_ms())
        except Exception as error:  # noqa: BLE001  the next tick tries again
            await asyncio.sleep(TICK_S)
            wait_ms = CLAIM_MS if isinstance(error, Unreadable) else 0  # a later version sends its own sooner
            with suppress(SaysoError):
                await self.wiring.part(Deliveries).defer(name, await self.wiring.schedule.now_ms() + wait_ms)
            self.trouble.note(error, message=name)
        finally:
            del self.under_way[name]

    async def _empty(self, endpoint_id: str) -> None:
        """Send what is due in a lane, then list the lane under its next message."""
        deliveries, earliest_ms = self.wiring.part(Deliveries), 0
        await deliveries.defer(f"{LANE}{endpoint_id}", await self.wiring.schedule.now_ms() + CLAIM_MS)
        while not self.closing and not earliest_ms:
            now_ms = await self.wiring.schedule.now_ms()
            lane = self.lanes.setdefault(endpoint_id, Lane())
            due = await deliveries.lane(endpoint_id).due(now_ms, lane.at_once)
            if not due:
                break
            target = await find_target(self.wiring, endpoint_id, now_ms)
            wait_ms = 0
            if target is not None and not target.refusal:
                wait_ms = max(0, lane.blocked_until_ms - now_ms) or self.breakers.wait_ms(target.endpoint_id, now_ms)
            if not wait_ms:
                groups = await deliveries.group(due)
                waits = await asyncio.gather(*(self._deliver_in_turn(group, endpoint_id, target) for group in groups))
                wait_ms = _BUSY_MS if max(waits) == _SKIPPED else max(0, *waits)
            earliest_ms = now_ms + wait_ms if wait_ms else 0
        await deliveries.settle_lane(endpoint_id, earliest_ms)

    async def _deliver_in_turn(self, message_ids: list[str], endpoint_id: str, target: Target | None) -> int:
        """Attend to messages one after the other, until the lane must wait; return for how long."""
        for message_id in message_ids:
            if wait_ms := await self._deliver(message_id, endpoint_id, target):
                return wait_ms
        return 0

    async def _deliver(self, message_id: str, endpoint_id: str, target: Target | None) -> int:
        """Attend to one message; return how long the lane must wait, 0 for no wait."""
        deliveries = self.wiring.part(Deliveries)
        try:
            waiting = await deliveries.read(message_id)
        except Unreadable:  # a later version, which wrote it, sends it
            await deliveries.lane(endpoint_id).defer(message_id, await self.wiring.schedule.now_ms() + CLAIM_MS)
            return 0
        now_ms = await self.wiring.schedule.now_ms()
        if waiting is None or waiting.delivery.ended is not None:
            await deliveries.lane(endpoint_id).forget(message_id)
            return 0
        if target is None or target.refusal:
            how, reason = ("nobody to tell", "") if target is None else ("given up", target.refusal)
            await deliveries.end(waiting, how, now_ms, reason=reason)
            return 0
        if now_ms >= waiting.delivery.until_ms + await self._jumped_ms(waiting, target, now_ms):
            await self._give_up(waiting, now_ms, waiting.delivery.reason or "Its time was over before an attempt.")
            return 0
        if now_ms < waiting.delivery.not_before_ms:
            return _SKIPPED  # claimed since it was listed as due
        return await self._attempt(waiting, target, now_ms)

    async def _jumped_ms(self, waiting: Waiting, target: Target, now_ms: int) -> int:
        """Return how far the store's clock jumped while the message waited, unless an admin confirmed the jump."""
        known = await self.wiring.freezes.known()
        since_ms = waiting.delivery.until_ms - target.retry_for_ms
        jumps = [
            (freeze.jumped_to_ms or 0, freeze.at_ms)
            for freeze in doubt_time(known, self.wiring.freezes.mark_ms(), now_ms)
            if freeze.scope == TIME and freeze.deadlines == "move"
        ]
        return sum(to_ms - max(from_ms, since_ms) for to_ms, from_ms in jumps if to_ms > since_ms)

    async def _attempt(self, waiting: Waiting, target: Target, now_ms: int) -> int:
        with self.slots.take(target.places) as free:
            if not free:
                return _BUSY_MS
            try:
                for allowance, who in target.limits:
                    await self.wiring.attempts.count(allowance, who)
            except TooManyRequests as error:
                return int(str(error.facts.get("retry_after_s", 1))) * 1000
            claimed = await self.wiring.part(Deliveries).claim(waiting, now_ms)
            if claimed is None:
                return _SKIPPED
            return await self._post(claimed, target)

    async def _post(self, claimed: Waiting, target: Target) -> int:
        message, began_ms = claimed.delivery, monotonic_ms()
        try:
            answer = await self.wiring.posts.post(target.url, target.secrets, message.message_id, message.body.encode())
        except UnsafeUrl as error:
            answer = Answer(0, error=error.message)
        now_ms = await self.wiring.schedule.now_ms()
        lane = self.lanes.setdefault(target.endpoint_id, Lane())
        quick = answer.accepted and monotonic_ms() - began_ms < _QUICK_MS
        most = _MOST_TO_ENDPOINT if target.is_endpoint else _MOST_AT_ONCE
        lane.at_once = min(most, lane.at_once * 2) if quick else 1
        self.breakers.note(target.endpoint_id, accepted=answer.accepted, now_ms=now_ms)
        if answer.accepted:
            await self.wiring.part(Deliveries).end(claimed, DELIVERED, now_ms, answer.status)
            log.info("message_delivered", message=message.id, endpoint=target.endpoint_id, tries=message.tries)
            await self._note_delivered(message, now_ms, monotonic_ms() - began_ms)
            return 0
        return await self._refused(claimed, target, answer, now_ms)

    async def _note_delivered(self, message: Delivery, now_ms: int, took_ms: float) -> None:
        """Let observers learn of an accepted message; nothing is read without any."""
        for observer in self.wiring.store.hooks.observers:
            with suppress(SaysoError):
                record = (await self.wiring.desk.suspensions.read(find_suspension_id(message))).record
                observer.note_delivery(record, message.id, now_ms, took_ms)

    async def _refused(self, claimed: Waiting, target: Target, answer: Answer, now_ms: int) -> int:
        reason, message = describe_refusal(answer), claimed.delivery
        if answer.status == GONE and target.is_endpoint:
            await self.wiring.part(Endpoints).disable(target.endpoint_id, reason)
            await self._give_up(claimed, now_ms, reason, answer.status)
            return 0
        requested_ms = read_retry_after_ms(answer, now_ms)
        again_at_ms = target.find_next_ms(message, requested_ms, now_ms)
        if again_at_ms is None:
            await self._give_up(claimed, now_ms, reason, answer.status)
            return 0
        await self.wiring.part(Deliveries).postpone(claimed, again_at_ms, answer.status, reason)
        facts = {"message": message.id, "endpoint": target.endpoint_id, "tries": message.tries}
        error = answer.detail or answer.error
        log.warning("message_not_taken", **facts, status=answer.status, error=error, again_in_ms=again_at_ms - now_ms)
        block_ms = min(requested_ms, _LONGEST_BLOCK_MS)
        self.lanes.setdefault(target.endpoint_id, Lane()).blocked_until_ms = now_ms + block_ms
        return block_ms

    async def _give_up(self, waiting: Waiting, now_ms: int, reason: str, status: int = 0) -> None:
        await self.wiring.part(Deliveries).end(waiting, "given up", now_ms, status, reason)
        message = waiting.delivery
        log.warning("delivery_given_up", message=message.id, endpoint=message.endpoint_id, tries=message.tries)


def describe_refusal(answer: Answer) -> str:
    """Return why a message was not accepted, for people."""
    if answer.error:
        return f"No valid response: {answer.error}."
    if answer.status == GONE:
        return "The receiver answered 410: it wants no more messages."
    if 300 <= answer.status < 400:
        return f"The receiver answered {answer.status}. Redirects are not followed; register the new URL."
    return f"The receiver answered {answer.status}."


async def keep_delivering(wiring: Wiring, stopping: asyncio.Event) -> None:
    """Deliver until stopped; then finish the attempts under way."""
    courier = Courier(wiring)
    await repeat(courier.deliver_due, TICK_S, stopping, "delivering_failed")
    courier.closing = True
    await courier.finish()
