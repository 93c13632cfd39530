"""Receivers of signed messages as small programs over TLS, each on its own port, well behaved or not."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from sayso.core.clock import now_ms

Behaviour = Literal["well", "30 s", "never", "1 byte/s", "301", "410", "429", "500", "reset", "half", "not http"]

_HEADS = {
    "301": b"HTTP/1.1 301 Moved\r\nLocation: https://localhost/\r\nContent-Length: 0\r\n\r\n",
    "410": b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
    "429": b"HTTP/1.1 429 Slow\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n",
    "500": b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n",
    "half": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhal",
    "not http": b"220 mail.example.com ESMTP\r\n",
}


@dataclass
class Arrival:
    """A message, when it came in, and when its answer or its connection ended."""

    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    at_ms: int
    path: str = ""
    ended_at_ms: int = 0


@dataclass
class Program:
    """One receiver: it returns challenges, and answers events as its behaviour says."""

    behaviour: Behaviour = "well"
    port: int = 0
    answers_after_s: float = 0
    came: list[Arrival] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://localhost:{self.port}/hooks"

    @property
    def events(self) -> list[Arrival]:
        """What came in beside challenges."""
        return [one for one in self.came if one.body["type"] != "webhook.verification"]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read requests and answer them, one after another while it behaves well."""
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the last one: the loop ends before an idle connection does
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        arrival = await read_request(reader)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.came.append(arrival)
            if arrival.body["type"] == "webhook.verification":
                writer.write(write_body({"challenge": arrival.body["challenge"]}))
                await writer.drain()
            else:
                await self.behave(reader, writer, b"HTTP/1.1 204 No Content\r\n\r\n")
        finally:
            self.at_once -= 1
        return self.behaviour == "well"

    async def behave(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, accepted: bytes) -> None:
        """Answer as its behaviour says; a well-behaved one sends `accepted`."""
        if self.behaviour == "reset":
            writer.transport.abort()
        elif self.behaviour in ("30 s", "never"):
            await asyncio.wait_for(reader.read(), 30 if self.behaviour == "30 s" else None)
        elif self.behaviour == "1 byte/s":
            await self._drip(reader, writer)
        else:
            await asyncio.sleep(self.answers_after_s)
            writer.write(_HEADS.get(self.behaviour, accepted))
        await writer.drain()

    async def _drip(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in _write(b"x" * 60):
            writer.write(bytes([byte]))
            await writer.drain()
            try:
                await asyncio.wait_for(reader.read(), 1)
            except TimeoutError:
                continue
            return


@asynccontextmanager
async def serving(certificate: str, behaviours: Sequence[Behaviour]) -> AsyncIterator[list[Program]]:
    """Serve one program for each behaviour over TLS, in this event loop."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    programs = [Program(behaviour) for behaviour in behaviours]
    async with serving_all(programs, context):
        yield programs


@asynccontextmanager
async def serving_all(programs: Sequence[Program], context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    """Serve each program on a port of its own, in this event loop."""
    servers = []
    for program in programs:
        server = await asyncio.start_server(program.answer, "127.0.0.1", 0, ssl=context)
        program.port = server.sockets[0].getsockname()[1]
        servers.append(server)
    try:
        yield
    finally:
        for server in servers:
            server.close()


async def read_request(reader: asyncio.StreamReader) -> Arrival:
    """Return one request with a JSON body."""
    line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines if one)}
    raw = await reader.readexactly(int(headers["content-length"]))
    return Arrival(headers, json.loads(raw), raw, now_ms(), line.split()[1])


def write_body(body: Any) -> bytes:
    """Return a response with a JSON body."""
    return _write(json.dumps(body).encode())


def _write(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
