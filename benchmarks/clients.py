"""HTTP with little overhead, and reports of tools' starts.

The driver shares two cores with what it measures: one event loop, raw keep-alive connections, no parsing beyond status
and length. Tools report their start over one datagram socket, with the machine's monotonic clock.
"""

import asyncio
import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from sayso.core.clock import monotonic_ms

T = TypeVar("T")
STAMPS = "SAYSO_BENCH_STAMPS"
"""The environment variable with the socket for the stamps."""


class Connection:
    """One keep-alive connection; one request at a time."""

    def __init__(self, port: int, headers: Mapping[str, str]) -> None:
        self._port = port
        self._head = _write_headers(headers)

    @classmethod
    async def open(cls, port: int, headers: Mapping[str, str]) -> Self:
        """Connect to a service on this machine."""
        connection = cls(port, headers)
        await connection._connect()
        return connection

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send one request with a JSON body and return status and body."""
        raw = json.dumps(body).encode() if body is not None else b""
        return await self.send(method, path, raw, {"Content-Type": "application/json"})

    async def send(self, method: str, path: str, raw: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Send one request and return status and body."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{self._head}{_write_headers(headers)}"
        if self._reader.at_eof():  # the service closed the idle connection
            await self._connect()
        self._writer.write(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        head_lines = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head_lines.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        return int(head_lines[9:12]), await self._reader.readexactly(length)

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        await self._writer.wait_closed()


class Clients:
    """A pool of connections, each for one request at a time."""

    def __init__(self, connections: list[Connection]) -> None:
        self._connections = connections
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._free.put_nowait(connection)

    @classmethod
    async def open(cls, port: int, headers: Mapping[str, str], count: int, services: int = 1) -> Self:
        """Open `count` connections, to each of so many services in turn, the first of which has the port."""
        return cls([await Connection.open(port + number % services, headers) for number in range(count)])

    async def call(self, method: str, path: str, body: Any = None, expect: tuple[int, ...] = (200, 201)) -> bytes:
        """Send one request on a free connection. Raise `RuntimeError` for an unexpected status."""
        async with self._take() as connection:
            status, answer = await connection.request(method, path, body)
        if status not in expect:
            raise RuntimeError(f"{method} {path} answered {status}: {answer[:300]!r}")
        return answer

    async def post(self, path: str, raw: bytes, headers: Mapping[str, str]) -> int:
        """Send one request on a free connection and return its status."""
        async with self._take() as connection:
            return (await connection.send("POST", path, raw, headers))[0]

    @asynccontextmanager
    async def _take(self) -> AsyncIterator[Connection]:
        connection = await self._free.get()
        try:
            yield connection
        finally:
            self._free.put_nowait(connection)

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()


class Stamps(asyncio.DatagramProtocol):
    """The start of each tool, by its id."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="stamps")
        self.path = os.path.join(self._folder.name, "s")
        self._receivers: dict[str, Callable[[str], None]] = {}

    async def listen(self) -> None:
        """Bind the socket."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)
        sock.bind(self.path)
        sock.setblocking(False)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=sock)

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Pass one report on; only the first of a name counts."""
        name, _, value = data.decode().partition(" ")
        receive = self._receivers.pop(name, None)
        if receive is not None:
            receive(value)

    def expect(self, name: str) -> asyncio.Future[float]:
        """Return a future for the start of the tool with that id, ms."""
        started: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._receivers[name] = lambda value: _settle(started, float(value))
        return started

    def expect_id(self, name: str) -> asyncio.Future[str]:
        """Return a future for the id that a handler reports for the call with that name."""
        reported: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._receivers[f"id:{name}"] = lambda value: _settle(reported, value)
        return reported


_sender: dict[str, socket.socket] = {}


def stamp(name: str) -> None:
    """Report that the tool with that id starts now; called inside the tool."""
    at_ms = monotonic_ms()
    sock = _sender.setdefault("socket", socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    sock.sendto(f"{name} {at_ms}".encode(), os.environ[STAMPS])


def _settle(future: asyncio.Future[T], value: T) -> None:
    if not future.done():  # its waiter may have given up
        future.set_result(value)


def _write_headers(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
