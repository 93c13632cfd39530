"""Hear channels of the store, any number over one connection, joined and left at any time.

The client library looks at each message for longer than the store takes for the whole commit, and sends one command at
a time; here it connects, signs in and does TLS, and its connection is then taken over, as in `lines.py`.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Self, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

_MESSAGES = frozenset((b"subscribe", b"message"))


class Channels(asyncio.Protocol):
    """One connection that hears channels; `told` is called with a channel's name once it is heard, and at each message.

    The store's word that a channel is heard comes before whatever is said on it later, so that nothing is missed by
    whoever looks after that.
    """

    def __init__(self, connection: Any, told: Callable[[bytes], None]) -> None:
        self._connection = connection  # it would hang up when nobody holds it
        self._notify = told
        self._reader = hiredis.Reader(replyError=ResponseError)
        self._heard = 0
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport = connection._writer.transport
        self._transport.set_protocol(self)

    @classmethod
    async def open(cls, redis: Redis, told: Callable[[bytes], None]) -> Self:
        """Connect; raises the library's errors."""
        pool: Any = redis.connection_pool
        connection = pool.make_connection()
        await connection.connect()
        return cls(connection, told)

    def join(self, names: Collection[str]) -> None:
        """Begin to hear channels."""
        self._send("SUBSCRIBE", *names)

    def leave(self, name: str) -> None:
        """Hear a channel no longer."""
        self._send("UNSUBSCRIBE", name)

    async def last(self, alive_every_s: float) -> None:
        """Return never; raise when the connection is lost, or does not answer when it is asked whether it lives."""
        while True:
            heard = self._heard
            await asyncio.wait((self._lost,), timeout=alive_every_s)
            if self._lost.done():
                self._lost.result()
            if self._heard == heard:
                self._send("PING")
                await asyncio.wait((self._lost,), timeout=alive_every_s)
                if self._heard == heard:
                    raise RedisTimeoutError("the store's channel has gone quiet")

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Tell of each message; what else there is shows that the connection lives."""
        self._heard += 1
        try:
            self._reader.feed(data)
            while (found := self._reader.gets()) is not False:
                if isinstance(found, ResponseError):
                    raise found
                if isinstance(found, list) and found[0] in _MESSAGES:
                    self._notify(found[1])
        except (hiredis.ProtocolError, ResponseError) as error:
            self.connection_lost(error)
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Have `last` raise."""
        if not self._lost.done():
            self._lost.set_exception(RedisConnectionError(f"the store's channel was lost: {error or 'it hung up'}"))
            self._lost.exception()  # a channel that is being closed has nobody left to tell

    def _send(self, *words: str) -> None:
        if not self._transport.is_closing():
            self._transport.write(hiredis.pack_command(cast(Any, words)))
