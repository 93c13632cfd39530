"""Wake whoever waits for a change, with one subscription for the whole process.

A wake-up is a hint: the waiter reads again and may find nothing new. After a lost connection everybody is woken, so a
missed message costs a look, never an answer.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from redis.asyncio import Redis

from service.store.connections import LOST
from service.store.keys import CHANGES


class Watch:
    """Fan-out of the change channel to the waiters of this process; run `listen` as a task beside it."""

    def __init__(self, blocking: Redis) -> None:
        self._redis = blocking
        self._waiters: dict[str, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def on(self, topic: str) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever `topic` (a tenant, suspension or run) moves; clear it to wait again."""
        event = asyncio.Event()
        self._waiters[topic].add(event)
        try:
            yield event
        finally:
            self._waiters[topic].discard(event)
            if not self._waiters[topic]:
                del self._waiters[topic]

    async def listen(self) -> None:
        """Follow the channel until cancelled, through any number of lost connections."""
        while True:
            try:
                await self._follow()
            except LOST:
                self.wake_all()
                await asyncio.sleep(0.2)

    async def _follow(self) -> None:
        async with self._redis.pubsub() as pubsub:
            await pubsub.subscribe(CHANGES)
            self.wake_all()
            async for message in pubsub.listen():
                if message["type"] == "message":
                    for topic in message["data"].decode().split(" "):
                        for event in self._waiters.get(topic, ()):
                            event.set()

    def wake_all(self) -> None:
        """Let everybody look again."""
        for events in self._waiters.values():
            for event in events:
                event.set()


async def wait_woken(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait until the event is set or the time is over; clears it and tells whether it was set."""
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return False
    event.clear()
    return True
