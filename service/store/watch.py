"""Wake whoever waits for a change, with one subscription for the whole process.

A wake-up is a hint: the waiter reads again and may find nothing new. After a lost connection everybody is woken, so a
missed message costs a look, never an answer; and a connection that has gone quiet is asked whether it lives, so that
nobody who waits has to look by themselves, however many they are.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from redis.asyncio import Redis
from redis.exceptions import TimeoutError as RedisTimeoutError

from service.store.connections import LOST
from service.store.keys import CHANGES

ALIVE_EVERY_S = 2.0
"""How often a quiet connection is asked whether it lives; one that has not answered by the next time is lost."""

READERS = 32
"""How many of those who are woken together read at once: each takes a connection to the store."""


class Watch:
    """Fan-out of the change channel to the waiters of this process; run `listen` as a task beside it."""

    def __init__(self, blocking: Redis) -> None:
        self._redis = blocking
        self._waiters: dict[str, set[asyncio.Event]] = defaultdict(set)
        self.readers = asyncio.Semaphore(READERS)

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
            asked = False
            while True:
                message = await pubsub.get_message(timeout=ALIVE_EVERY_S)
                if message is None:
                    if asked:
                        raise RedisTimeoutError("the store's channel has gone quiet")
                    await pubsub.ping()
                    asked = True
                    continue
                asked = False
                if message["type"] == "message":
                    self._wake(message["data"].decode().split(" "))

    def _wake(self, topics: list[str]) -> None:
        for topic in topics:
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
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
