"""Run scripts on the store, any number at the same time over one connection.

A connection of the client library serves one command at a time, and each costs it more than the command itself. Here
what is asked in one turn of the event loop goes out in one write, and what comes back is handed out in order; see
`docs/decisions/one-connection-to-the-store.md`. Connecting, signing in and TLS remain the library's.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from hashlib import sha1
from typing import Any, NamedTuple, Self, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

Word = str | bytes | int


def _pack(*words: Word) -> bytes:
    """Return a command as it goes over the line."""
    packed: bytes = hiredis.pack_command(cast(Any, words))
    return packed


def _pack_words(*words: Word) -> bytes:
    """Return words of a command."""
    return _pack(*words).partition(b"\r\n")[2]


def _taken(found: Any) -> Any:
    """Return an answer; raises what it says that the store refused."""
    if isinstance(found, Exception):
        raise found
    return found


class Script:
    """A Lua script, known to the store by its digest."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.sha = sha1(source.encode(), usedforsecurity=False).hexdigest()

    def pack(self, keys: Sequence[str], args: Sequence[Word] = ()) -> bytes:
        """Return the command that runs it, as it goes over the line."""
        return _pack("EVALSHA", self.sha, len(keys), *keys, *args)

    def pack_parts(self, parts: Sequence["Part"]) -> bytes:
        """Return the command that runs it on all these keys, with the number of parts and then all their arguments."""
        key_count, arg_count = sum(one.key_count for one in parts), sum(one.arg_count for one in parts)
        head = _pack_words("EVALSHA", self.sha, key_count)
        keys, args = (one.keys for one in parts), (one.args for one in parts)
        words = b"*%d\r\n" % (key_count + arg_count + 4)
        return b"".join((words, head, *keys, _pack_words(len(parts)), *args))


class Part(NamedTuple):
    """The keys and arguments of one change among many, packed before it is known beside which others they will go."""

    key_count: int
    keys: bytes
    arg_count: int
    args: bytes

    @classmethod
    def pack(cls, keys: Sequence[str], args: Sequence[Word]) -> Self:
        """Return one part; its arguments begin with the numbers of its keys and of its own arguments."""
        return cls(len(keys), _pack_words(*keys), len(args) + 2, _pack_words(len(keys), len(args), *args))


class Line:
    """The scripts of one process on their way to the store; it connects when it is first used, and again when lost.

    An answer may take as long as the client's `socket_timeout`; then the connection is given up with all that is on its
    way.
    """

    def __init__(self, redis: Redis) -> None:
        self._pool = redis.connection_pool
        self._wire: _Wire | None = None
        self._connecting = asyncio.Lock()

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Word] = ()) -> Any:
        """Return what the script returns.

        Raises the library's `ConnectionError` or `TimeoutError` when the answer is lost, and then nobody knows whether
        it ran; `ResponseError` for what the store refuses.
        """
        return await self._run(script, script.pack(keys, args))

    async def ask(self, *words: Word) -> Any:
        """Return the answer to any one command; one that blocks must not take longer than an answer may."""
        return _taken(await (await self._open()).send(_pack(*words)))

    async def run_parts(self, script: Script, parts: Sequence[Part]) -> Any:
        """Return what the script returns for all the parts; raises what `run` raises."""
        return await self._run(script, script.pack_parts(parts))

    def close(self) -> None:
        """Hang up."""
        if self._wire is not None:
            self._wire.close()

    async def _run(self, script: Script, command: bytes) -> Any:
        assemble = await self._open()
        found = await assemble.send(command)
        if isinstance(found, ResponseError) and str(found).startswith("NOSCRIPT"):
            await assemble.send(_pack("SCRIPT", "LOAD", script.source))
            found = await assemble.send(command)
        return _taken(found)

    async def _open(self) -> "_Wire":
        assemble = self._wire
        return assemble if assemble is not None and assemble.open else await self._connect()

    async def _connect(self) -> "_Wire":
        async with self._connecting:
            if self._wire is not None and self._wire.open:
                return self._wire
            pool: Any = self._pool
            connection = pool.make_connection()
            await connection.connect()
            self._wire = _Wire(connection, float(connection.socket_timeout))
            return self._wire


class _Wire(asyncio.Protocol):
    """One connection, taken over once the library has signed in on it."""

    def __init__(self, connection: Any, timeout_s: float) -> None:
        self._connection = connection  # it would hang up when nobody holds it
        self._transport: asyncio.Transport = connection._writer.transport
        self._transport.set_protocol(self)
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=ResponseError)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.open = True

    def send(self, command: bytes) -> asyncio.Future[Any]:
        """Send a command; what the store refuses is returned, not raised.

        uvloop sends what is written in one turn of the loop in one go; collecting it here would cost a turn more.
        """
        if not self.open:
            raise RedisConnectionError("the connection to the store was lost")
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((answer, self._loop.time()))
        self._transport.write(command)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._look_at_time)
        return answer

    def close(self) -> None:
        """Hang up."""
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Hand out the answers in the order in which their commands went out."""
        try:
            self._reader.feed(data)
            while (found := self._reader.gets()) is not False:
                answer, _ = self._waiting.popleft()
                if not answer.done():
                    answer.set_result(found)
        except (hiredis.ProtocolError, IndexError):
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell everybody who waits that their answer is lost."""
        self._fail(RedisConnectionError(f"the connection to the store was lost: {error or 'it hung up'}"))

    def _look_at_time(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        late_s = self._loop.time() - self._waiting[0][1] - self._timeout_s
        if late_s >= 0:
            self._fail(RedisTimeoutError(f"the store did not answer within {self._timeout_s:g} s"))
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(-late_s, self._look_at_time)

    def _fail(self, error: Exception) -> None:
        self.open = False
        if self._timer is not None:
            self._timer.cancel()
        while self._waiting:
            answer, _ = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(error)
