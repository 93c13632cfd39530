"""Pipelined commands and scripts over one connection: those of one turn of the event loop go out in one write."""

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha1
from typing import Any, NamedTuple, Self, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso.core.clock import monotonic_ms
from service.core.metrics import note_reply
from service.core.store.connection.connecting import Translation, is_demotion, is_refusal, macs_of

_MOST_BYTES = 65_536


class JoinedWrites:
    """A transport that sends what is written in one turn of the event loop together, in pieces of 64 kB."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send the data at the end of this turn or before, unless the connection is lost."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:  # the transport then asks the writer to wait for a slow reader
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held, self._bytes = self._held, [], 0
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))


Word = str | bytes | int
_NUMBER = struct.Struct("<I")


def _pack(*words: Word) -> bytes:
    packed: bytes = hiredis.pack_command(cast(Any, words))
    return packed


def _unwrap(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


class Script:
    """A Lua script, called by its digest."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.sha = sha1(source.encode(), usedforsecurity=False).hexdigest()

    def pack(self, keys: Sequence[str], args: Sequence[Word] = ()) -> bytes:
        return _pack("EVALSHA", self.sha, len(keys), *keys, *args)

    def pack_parts(self, first: Word, parts: Sequence["Part"]) -> bytes:
        """Return the encoded command that runs it on all parts: their keys, `first`, and all parts in one argument.

        A server reads a long argument at once, but many short ones in pieces of 16 kB, with a write to the disk after
        each if others write too.
        """
        places: dict[str, int] = {}
        numbered = ([places.setdefault(key, len(places) + 1) for key in part.keys] for part in parts)
        packed: list[bytes] = []
        for part, numbers in zip(parts, numbered, strict=True):
            packed += (struct.pack(f"<{len(numbers) + 1}I", len(numbers), *numbers), part.args)
        return self.pack(list(places), (first, b"".join(packed)))


class Part(NamedTuple):
    """The keys and the encoded arguments of one change of a batch."""

    keys: tuple[str, ...]
    args: bytes

    @classmethod
    def pack(cls, keys: Iterable[str], args: Sequence[Word]) -> Self:
        """Return one part; each argument follows its length, and all follow their number."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in args]
        sized = (part for word in words for part in (_NUMBER.pack(len(word)), word))
        return cls(tuple(keys), b"".join((_NUMBER.pack(len(words)), *sized)))


Ask = Callable[..., Awaitable[list[Any]]]
"""Sends commands and returns their replies, an error as a `ResponseError`."""


class Pipeline:
    """One connection for concurrent commands. It fails on a reply slower than `socket_timeout`, and reconnects."""

    def __init__(self, redis: Redis) -> None:
        self._pool, self.macs = redis.connection_pool, macs_of(redis)
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._translated = Translation(self._drop)
        self.on_open: Callable[[Ask], Awaitable[None]] | None = None

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Word] = ()) -> Any:
        """Return what the script returns; raises `Unavailable`. If the reply was lost, the script may have run."""
        async with self._translated:
            return _unwrap(await self._run(script, script.pack(keys, args)))

    async def ask(self, *words: Word) -> Any:
        """Return the reply to a command; one that blocks must end within the `socket_timeout`."""
        async with self._translated:
            reply = _unwrap(await (await self._open()).send(_pack(*self.macs.protect(words))))
        return self.macs.require(words, reply)

    async def ask_all(self, *commands: Sequence[Word]) -> list[Any]:
        """Return the replies to several commands, sent at once; raises the error of the first that failed."""
        async with self._translated:
            connection = await self._open()
            sent = [connection.send(_pack(*self.macs.protect(words))) for words in commands]
            replies = [_unwrap(reply) for reply in await asyncio.gather(*sent)]
        return [self.macs.require(words, reply) for words, reply in zip(commands, replies, strict=True)]

    async def ask_each(self, *commands: Sequence[Word]) -> list[Any]:
        """Return the replies to several commands, sent at once; that of one that failed is its error.

        Raises `Unavailable` where another server is the primary now.
        """
        async with self._translated:
            replies = await (await self._open()).ask_each(*commands)
            for reply in replies:
                if isinstance(reply, ResponseError) and is_demotion(reply):
                    raise reply
        return replies

    async def ready(self) -> None:
        """Connect, and call `on_open`, unless there is a connection; what is sent next goes out over it."""
        async with self._translated:
            await self._open()

    async def run_parts(self, script: Script, first: Word, parts: Sequence[Part]) -> Any:
        """Return what the script returns for its first argument and all parts, None if it fails; raises as `run`."""
        async with self._translated:
            reply = await self._run(script, script.pack_parts(first, parts))
            if isinstance(reply, ResponseError) and is_refusal(reply):
                raise reply
        return None if isinstance(reply, ResponseError) else reply

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def _drop(self) -> None:
        self.close()

    async def _run(self, script: Script, command: bytes) -> Any:
        connection = await self._open()
        reply = await connection.send(command)
        if isinstance(reply, ResponseError) and str(reply).startswith("NOSCRIPT"):
            await connection.send(_pack("SCRIPT", "LOAD", script.source))
            reply = await connection.send(command)
        return reply

    async def _open(self) -> "_Connection":
        if self._connection is not None and self._connection.open:
            return self._connection
        async with self._connecting:
            if self._connection is None or not self._connection.open:
                pool: Any = self._pool
                opened = pool.make_connection()
                await opened.connect()
                connection = _Connection(opened, float(opened.socket_timeout))
                if self.on_open is not None:
                    try:
                        await self.on_open(connection.ask_each)
                    except BaseException:
                        connection.close()
                        raise
                self._connection = connection
            return self._connection


class _Connection(asyncio.Protocol):
    """A connection that the library opened and authenticated."""

    def __init__(self, connection: Any, timeout_s: float) -> None:
        self._connection = connection  # garbage collection would close it
        self._transport: asyncio.Transport = connection._writer.transport
        self._transport.set_protocol(self)
        self._writes = JoinedWrites(self._transport)
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=ResponseError)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.open = True

    def send(self, command: bytes) -> asyncio.Future[Any]:
        """Send a command, with all of one turn of the event loop; an error reply is returned, not raised."""
        if not self.open:
            raise RedisConnectionError("the connection to the store was lost")
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((answer, monotonic_ms()))
        self._writes.write(command)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._check_timeout)
        return answer

    async def ask_each(self, *commands: Sequence[Word]) -> list[Any]:
        return await asyncio.gather(*[self.send(_pack(*words)) for words in commands])

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            at_ms = monotonic_ms()
            while (reply := self._reader.gets()) is not False:
                answer, sent_ms = self._waiting.popleft()
                if not answer.done():
                    answer.set_result(reply)
                note_reply((at_ms - sent_ms) / 1000)
        except (hiredis.ProtocolError, IndexError):
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(RedisConnectionError(f"the connection to the store was lost: {error or 'it was closed'}"))

    def _check_timeout(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        late_s = (monotonic_ms() - self._waiting[0][1]) / 1000 - self._timeout_s
        if late_s >= 0:
            self._fail(RedisTimeoutError(f"the store did not answer within {self._timeout_s:g} s"))
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(-late_s, self._check_timeout)

    def _fail(self, error: Exception) -> None:
        self.open = False
        if self._timer is not None:
            self._timer.cancel()
        while self._waiting:
            answer, _ = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(error)
