"""Subscriptions to any number of channels over one connection, with less delay than the client library's."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Self, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from service.joined_writes import JoinedWrites

_MESSAGES = frozenset((b"subscribe", b"message"))


class Channels(asyncio.Protocol):
    """One connection with subscriptions.

    `notify` gets the channel's name and, for a message, its text: at the confirmation of a subscription it is None.
    """

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
        """Connect; raises the library's errors."""
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
