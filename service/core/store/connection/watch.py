"""Wake-ups for waiters of this process, by topic. A process subscribes only to topics with waiters.

A wake-up is a hint: the waiter reads again and may find nothing new. The first one confirms the subscription, so a
read after it misses nothing. After a lost connection all waiters are woken. A quiet connection is checked with a PING,
so waiters need not poll.
"""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from typing import Any, Self, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso.core.clock import monotonic_ms
from service.core.store.connection.connecting import LOST, name_shared
from service.core.store.connection.pipeline import JoinedWrites
from service.core.store.keys import CHANGES

_MESSAGES = frozenset((b"subscribe", b"message"))


class Channels(asyncio.Protocol):
    """One connection with subscriptions. `notify` gets a channel's name and text: None once it is subscribed."""

    def __init__(self, connection: Any, notify: Callable[[bytes, bytes | None], None]) -> None:
        self._connection = connection  # garbage collection would close it
        self._notify = notify
        self._reader = hiredis.Reader(replyError=ResponseError)
        self._heard = 0
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport = connection._writer.transport
        self._transport.set_protocol(self)
        self._writes = JoinedWrites(self._transport)

    @classmethod
    async def open(cls, redis: Redis, notify: Callable[[bytes, bytes | None], None]) -> Self:
        pool: Any = redis.connection_pool
        connection = pool.make_connection()
        await connection.connect()
        return cls(connection, notify)

    def subscribe(self, names: Collection[str]) -> None:
        self._send("SUBSCRIBE", *names)

    def unsubscribe(self, names: Collection[str]) -> None:
        self._send("UNSUBSCRIBE", *names)

    async def run(self, alive_every_s: float) -> None:
        """Never return; raise when the connection is lost or does not answer a PING."""
        while True:
            heard = self._heard
            await asyncio.wait((self._lost,), timeout=alive_every_s)
            if self._lost.done():
                self._lost.result()
            if self._heard == heard:
                self._send("PING")
                await asyncio.wait((self._lost,), timeout=alive_every_s)
                if self._heard == heard:
                    raise RedisTimeoutError("the store did not answer a PING on the connection for channels")

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._heard += 1
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                if isinstance(reply, ResponseError):
                    raise reply
                if isinstance(reply, list) and reply[0] in _MESSAGES:
                    self._notify(reply[1], reply[2] if isinstance(reply[2], bytes) else None)
        except (hiredis.ProtocolError, ResponseError) as error:
            self.connection_lost(error)
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Make `run` raise."""
        if not self._lost.done():
            reason = error or "it was closed"
            self._lost.set_exception(RedisConnectionError(f"the connection for channels was lost: {reason}"))
            self._lost.exception()  # marks it as retrieved: `run` may have ended

    def _send(self, *words: str) -> None:
        if not self._transport.is_closing():
            self._writes.write(hiredis.pack_command(cast(Any, words)))


ALIVE_EVERY_S = 2.0  # interval of PINGs on a quiet connection; without an answer within another interval it is lost
HEARD_WITHIN_S = 1.0  # how long to wait for the first wake-up before reading anyway
MOST_NAMES = 1000  # a waiter with more changes reads everything again
HELD_S = 10.0  # how long a topic stays subscribed after `mark`
MARKED_WITHIN_S = 0.1  # how long `mark` waits for the subscription
LINGER_S = 0.2  # how long a topic stays subscribed after its last waiter; those who come back need no round trip
READERS = 32  # how many woken waiters read at once; each uses a connection to the store


class Wakes(asyncio.Event):
    """The wake-ups of one waiter, and the names of what has changed since `take`; `bell` is set with it."""

    def __init__(self, bell: asyncio.Event | None = None) -> None:
        super().__init__()
        self._bell = bell
        self._names: set[str] | None = None
        self.woken_ms = 0.0  # the monotonic time of the last change

    def take(self) -> set[str] | None:
        """Clear the event and return the changed suspensions; None where some of them are not known."""
        names, self._names = self._names, set()
        self.clear()
        return names

    def wake(self, names: bytes | None) -> None:
        """Set the event; `names` lists the changed suspensions."""
        if names is None or self._names is None or len(self._names) > MOST_NAMES:
            self._names = None
        else:
            self._names.update(names.decode().split())
        self.woken_ms = monotonic_ms()
        self.set()

    def set(self) -> None:
        super().set()
        if self._bell is not None:
            self._bell.set()


_NUMBERS = count(1)


class _Hold:
    """A subscription without a waiter, until its time is over."""

    def __init__(self, subscription: AbstractContextManager[Wakes]) -> None:
        self._subscription = subscription
        self._timer: asyncio.TimerHandle | None = None
        self.event = subscription.__enter__()

    def end_after(self, seconds: float, end: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, end)

    def end(self) -> None:
        self._subscription.__exit__(None, None, None)


class Watch:
    """Fan-out of changes to the waiters of this process. Run `listen` as a task."""

    def __init__(
        self,
        blocking: Redis,
        on_lost: Callable[[Exception], None] = lambda _: None,
        on_found: Callable[[], None] = lambda: None,
    ) -> None:
        self._redis = blocking
        self._begin = name_shared(blocking, CHANGES)
        self._on_lost, self._on_found = on_lost, on_found
        self._channels: Channels | None = None
        self._heard: set[str] = set()
        self._waiters: dict[str, set[Wakes]] = defaultdict(set)
        self._dropping: set[str] = set()
        self._name = secrets.token_hex(4)
        self._counts: dict[str, int] = {}  # changes and subscriptions that were heard of each marked topic
        self._holds: dict[str, _Hold] = {}
        self.readers = asyncio.Semaphore(READERS)

    @contextmanager
    def on(self, topic: str, bell: asyncio.Event | None = None) -> Iterator[Wakes]:
        """Yield an event that is set once `topic` is subscribed and at each change, and `bell`; clear it to wait."""
        event = Wakes(bell)
        if topic in self._heard:
            event.set()
        elif self._channels is not None and topic not in self._waiters and topic not in self._dropping:
            self._channels.subscribe((self._begin + topic,))
        self._waiters[topic].add(event)
        self._dropping.discard(topic)
        try:
            yield event
        finally:
            self._waiters[topic].discard(event)
            if not self._waiters[topic]:
                del self._waiters[topic]
                self._drop_later(topic)

    async def mark(self, topic: str) -> str:
        """Return a mark of the topic's changes until now, which differs after the next one; empty where none is known.

        What was read after the mark is current as long as the mark is. The topic stays subscribed for a while.
        """
        if self._channels is None:
            return ""
        self._counts.setdefault(topic, next(_NUMBERS))
        hold = self._holds.pop(topic, None) or _Hold(self.on(topic))
        hold.end_after(HELD_S, partial(self._release, topic))
        self._holds[topic] = hold
        if topic not in self._heard:
            await wait_woken(hold.event, MARKED_WITHIN_S)
        return self.find_mark(topic)

    def find_mark(self, topic: str) -> str:
        """Return the mark of a topic that is subscribed and was marked before; else an empty one."""
        number = self._counts.get(topic)
        return f"{self._name}.{number}" if topic in self._heard and number is not None else ""

    def _release(self, topic: str) -> None:
        self._holds.pop(topic).end()
        self._counts = {name: number for name, number in self._counts.items() if name in self._waiters}

    def _drop_later(self, topic: str) -> None:
        """Unsubscribe soon, together with the other topics that are left meanwhile."""
        if self._channels is None:
            return
        if not self._dropping:
            asyncio.get_running_loop().call_later(LINGER_S, self._unsubscribe)
        self._dropping.add(topic)

    def _unsubscribe(self) -> None:
        topics, self._dropping = self._dropping, set()
        self._heard -= topics
        if topics and self._channels is not None:
            self._channels.unsubscribe([self._begin + topic for topic in topics])

    async def listen(self) -> None:
        """Receive changes until cancelled; reconnect after a loss."""
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
                channels.subscribe([self._begin + topic for topic in self._waiters])
            await channels.run(ALIVE_EVERY_S)
        finally:
            self._channels = None
            self._heard.clear()
            self._dropping.clear()
            channels.close()

    def _wake(self, channel: bytes, names: bytes | None) -> None:
        """Wake a topic's waiters; a late message from an earlier subscription is harmless."""
        topic = channel[len(self._begin) :].decode()
        events = self._waiters.get(topic)
        if events or topic in self._dropping:
            self._heard.add(topic)
        if topic in self._counts:
            self._counts[topic] = next(_NUMBERS)
        for event in events or ():
            event.wake(names)

    def wake_all(self) -> None:
        for events in self._waiters.values():
            for event in events:
                event.wake(None)


async def wait_woken(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the event and clear it; return False after the timeout."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
