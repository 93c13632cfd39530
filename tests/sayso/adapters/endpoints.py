"""A small HTTP endpoint that gives prepared answers in order."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One answer of the endpoint. Without a status it hangs up, or stays silent until the client disconnects."""

    status: int | None = 200
    body: bytes = b"{}"
    headers: tuple[str, ...] = ()
    silent: bool = False


@dataclass
class Heard:
    """A request that the endpoint received."""

    url: str = ""
    heads: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)


@asynccontextmanager
async def endpoint(answers: Sequence[Answer], port: int = 0) -> AsyncIterator[Heard]:
    """Serve `answers` in order, and repeat the last one."""
    heard = Heard()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1]) for line in head.lower().splitlines() if line.startswith("content-length")
        )
        heard.heads.append(head)
        heard.bodies.append(json.loads(await reader.readexactly(length)))
        answer = answers[min(len(heard.heads), len(answers)) - 1]
        if answer.silent:
            await reader.read()
        elif answer.status is not None:
            lines = [f"HTTP/1.1 {answer.status} X", f"content-length: {len(answer.body)}", "connection: close"]
            writer.write("\r\n".join([*lines, *answer.headers, "", ""]).encode() + answer.body)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    async with server:
        heard.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield heard
    await asyncio.gather(*serving)
