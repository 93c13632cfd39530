"""A proxy between a client and its store that fails one chosen command in one chosen way.

It counts the client's scripts. The store behind it is real: a command that it ran has its effect, also when the client
gets no reply.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

CLIENT_TIMEOUT_S = 0.25
"""The client's timeout for a reply that never comes."""


class Fault(StrEnum):
    """The fault of one command and its reply."""

    CUT_BEFORE = "the connection is cut before the command is sent"
    TORN_COMMAND = "the connection is cut in the middle of the command"
    CUT_AFTER = "the connection is cut after the server ran the command"
    TORN_REPLY = "the connection is cut in the middle of the reply"
    SILENT_BEFORE = "the connection stays open, the command never arrives"
    SILENT_AFTER = "the connection stays open, the reply never arrives"
    SLOW_COMMAND = "the command arrives late"
    SLOW_REPLY = "the reply arrives late"
    DRIPPING_REPLY = "the reply arrives byte by byte"


CUTTING = (Fault.CUT_BEFORE, Fault.TORN_COMMAND, Fault.CUT_AFTER, Fault.TORN_REPLY)
RUNS = (Fault.CUT_AFTER, Fault.TORN_REPLY, Fault.SILENT_AFTER, Fault.SLOW_REPLY, Fault.DRIPPING_REPLY)
"""The faults after which the server has run the command."""


class Proxy:
    """A socket of our own in front of the store's."""

    def __init__(self, upstream: Path) -> None:
        self._upstream = upstream
        self._fault: Fault | None = None
        self._left = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.hit, self.ran, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def arm(self, fault: Fault, place: int) -> None:
        """Fail the `place`-th script from now; a late reply waits for `go_on`.

        `hit` is set when the fault happens, `ran` when the server has answered.
        """
        self._fault, self._left = fault, place
        self.hit, self.ran, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def disarm(self) -> None:
        """Fail nothing."""
        self._fault = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until either side closes."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            up_reader, up_writer = await asyncio.open_unix_connection(str(self._upstream))
            try:
                await _Link(self, reader, writer, up_reader, up_writer).run()
            finally:
                up_writer.close()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            self._tasks.discard(task)
            writer.close()

    async def close(self) -> None:
        """Let go of every client."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def pick(self, command: bytes) -> Fault | None:
        """Return the fault of this command, if it has one."""
        if self._fault is None or not command.upper().startswith(b"EVALSHA"):
            return None
        self._left -= 1
        if self._left:
            return None
        fault, self._fault = self._fault, None
        self.hit.set()
        return fault


class _Link:
    """One client and its connection to the store. The client waits for each reply before its next command."""

    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._reader, self._writer = reader, writer
        self._up_reader, self._up_writer = up_reader, up_writer
        self._fault: Fault | None = None

    async def run(self) -> None:
        replies = asyncio.create_task(self._pass_replies())
        try:
            await self._pass_commands()
        finally:
            replies.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await replies

    async def _pass_commands(self) -> None:
        while True:
            name, raw = await _read_command(self._reader)
            fault = self._proxy.pick(name)
            if fault is Fault.CUT_BEFORE:
                return
            if fault is Fault.SILENT_BEFORE:
                await self._reader.read()  # until the client gives up
                return
            if fault is Fault.TORN_COMMAND:
                self._up_writer.write(raw[: len(raw) // 2])
                await self._up_writer.drain()
                return
            if fault is Fault.SLOW_COMMAND:
                await self._proxy.go_on.wait()
            self._fault = fault
            self._up_writer.write(raw)
            await self._up_writer.drain()

    async def _pass_replies(self) -> None:
        while raw := await self._up_reader.read(65536):
            fault, self._fault = self._fault, None
            if fault is not None:
                self._proxy.ran.set()
            if fault is Fault.SILENT_AFTER:
                continue
            if fault in (Fault.CUT_AFTER, Fault.TORN_REPLY):
                self._writer.write(raw[: len(raw) // 2] if fault is Fault.TORN_REPLY else b"")
                break
            if fault is Fault.SLOW_REPLY:
                await self._proxy.go_on.wait()
            for piece in [raw] if fault is not Fault.DRIPPING_REPLY else [bytes([one]) for one in raw]:
                self._writer.write(piece)
                await self._writer.drain()
        self._writer.close()


async def _read_command(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the name of the client's next command, and the command as it was sent."""
    head = await reader.readuntil(b"\r\n")
    parts, raw = [], [head]
    for _ in range(int(head[1:])):
        size = await reader.readuntil(b"\r\n")
        part = await reader.readexactly(int(size[1:]) + 2)
        raw += [size, part]
        parts.append(part[:-2])
    return parts[0], b"".join(raw)


@asynccontextmanager
async def running_proxy(store_url: str, folder: Path) -> AsyncIterator[tuple[Proxy, str]]:
    """Run a proxy in front of the store, and yield it with the URL to reach the store through it."""
    proxy, socket = Proxy(Path(unquote(urlsplit(store_url).path))), folder / "p.sock"
    server = await asyncio.start_unix_server(proxy.serve, str(socket))
    try:
        yield proxy, f"unix://{quote(str(socket))}?db=0&socket_timeout={CLIENT_TIMEOUT_S}"
    finally:
        server.close()
        await proxy.close()
