"""Wake whoever waits for a change. A process hears of what somebody there waits for, and of nothing else.

A wake-up is a hint: the waiter reads again and may find nothing new. The first one says that the topic is heard from
now on; whoever reads after it misses nothing. After a lost connection everybody is woken, so a missed message costs a
look, never an answer; and a connection that has gone quiet is asked whether it lives, so that nobody who waits has to
look by themselves, however many they are.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from redis.asyncio import Redis

from service.store.connection.connecting import LOST
from service.store.connection.pubsub import Channels
from service.store.keys import CHANGES

ALIVE_EVERY_S = 2.0
"""How often a quiet connection is asked whether it lives; one that has not answered by the next time is lost."""

HEARD_WITHIN_S = 1.0
"""How long to wait for the first wake-up before reading all the same; with the store away there is none."""

READERS = 32
"""How many of those who are woken together read at once: each takes a connection to the store."""


class Watch:
    """Fan-out of what moves to the waiters of this process; run `listen` as a task beside it."""

    def __init__(
        self,
        blocking: Redis,
        on_lost: Callable[[Exception], None] = lambda _: None,
        on_found: Callable[[], None] = lambda: None,
    ) -> None:
        self._redis = blocking
        self._on_lost, self._on_found = on_lost, on_found
        self._channels: Channels | None = None
        self._heard: set[str] = set()
        self._waiters: dict[str, set[asyncio.Event]] = defaultdict(set)
        self.readers = asyncio.Semaphore(READERS)

    @contextmanager
    def on(self, topic: str) -> Iterator[asyncio.Event]:
        """Give an event that is set once `topic` (a tenant, suspension or run) is heard, and whenever it moves.

        Clear it to wait again.
        """
        event = asyncio.Event()
        self._enter(topic, event)
        try:
            yield event
        finally:
            self._leave(topic, event)

    async def listen(self) -> None:
        """Hear what is waited for until cancelled, through any number of lost connections."""
        while True:
            try:
                await self._follow()
            except LOST as error:
                self._on_lost(error)
                self.wake_all()
                await asyncio.sleep(0.2)

    async def _follow(self) -> None:
        channels = await Channels.open(self._redis, self._wake)
        self._on_found()
        try:
            self._channels = channels
            if self._waiters:
                channels.join([CHANGES + topic for topic in self._waiters])
            await channels.last(ALIVE_EVERY_S)
        finally:
            self._channels = None
            self._heard.clear()
            channels.close()

    def _enter(self, topic: str, event: asyncio.Event) -> None:
        if topic in self._heard:
            event.set()
        elif self._channels is not None and topic not in self._waiters:
            self._channels.join((CHANGES + topic,))
        self._waiters[topic].add(event)

    def _leave(self, topic: str, event: asyncio.Event) -> None:
        self._waiters[topic].discard(event)
        if not self._waiters[topic]:
            del self._waiters[topic]
            self._heard.discard(topic)
            if self._channels is not None:
                self._channels.leave(CHANGES + topic)

    def _wake(self, channel: bytes) -> None:
        """Wake a topic's waiters. A late word on a topic that was left and entered anew is followed by another one."""
        topic = channel[len(CHANGES) :].decode()
        events = self._waiters.get(topic)
        if events:
            self._heard.add(topic)
            for event in events:
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
