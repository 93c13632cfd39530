"""Messages share connections that are open already, and none is lost where a receiver closes one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpcore
import pytest

from service.core.outgoing.connections import UnsafeUrl
from service.core.outgoing.http import Posts
from service.core.outgoing.keeping import KeptConnections
from service.core.settings.receivers import read_receivers
from tests.receivers import SECRET, Receiver


@dataclass
class Server:
    """Answers up to `answers` requests of each connection, and closes it at the next one."""

    answers: int = 100
    port: int = 0
    requests: list[int] = field(default_factory=list)  # of each connection
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.requests)
        self.requests.append(0)
        while await reader.read(65_536):
            self.requests[number] += 1
            if self.requests[number] > self.answers:
                break
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()
        self.closed.set()


@asynccontextmanager
async def serving(answers: int = 100) -> AsyncIterator[tuple[Server, Posts]]:
    server = Server(answers)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    posts = Posts(internal=read_receivers((f"127.0.0.1:{server.port}", f"localhost:{server.port}")))
    yield server, posts
    await posts.aclose()
    listener.close()


async def post(server: Server, posts: Posts) -> int:
    return (await posts.post(f"http://127.0.0.1:{server.port}/", [SECRET], "m", b"{}")).status


async def test_messages_to_one_receiver_share_a_connection() -> None:
    async with serving() as (server, posts):
        assert [await post(server, posts) for _ in range(3)] == [204] * 3
        assert server.requests == [3]


async def test_requests_without_an_id_get_a_connection_each() -> None:
    async with serving() as (server, posts):
        for _ in range(2):
            await posts.send(f"http://127.0.0.1:{server.port}/", {}, b"{}")
        assert server.requests == [1, 1]


async def test_message_is_sent_again_when_the_receiver_closes_a_kept_connection() -> None:
    async with serving(answers=1) as (server, posts):
        assert [await post(server, posts) for _ in range(2)] == [204] * 2
        assert server.requests == [2, 1]


async def test_new_connection_that_is_closed_is_a_failed_attempt() -> None:
    async with serving(answers=0) as (server, posts):
        assert await post(server, posts) == 0
        assert server.requests == [1]


async def test_idle_connection_is_closed() -> None:
    async with serving() as (server, posts):
        await post(server, posts)
        await asyncio.wait_for(server.closed.wait(), 30)


async def test_other_name_of_the_same_address_gets_a_connection_of_its_own() -> None:
    async with serving() as (server, posts):
        await post(server, posts)
        await posts.post(f"http://localhost:{server.port}/", [SECRET], "m", b"{}")
        assert server.requests == [1, 1]


async def test_kept_connection_serves_no_other_tls_name(receiver: Receiver) -> None:
    posts = Posts(loopback=True)
    assert (await posts.post(receiver.url, [SECRET], "m", b'{"type": "x"}')).accepted
    port = receiver.url.rsplit(":", 1)[1]
    assert (await posts.post(f"https://127.0.0.2:{port}", [SECRET], "m", b"{}")).status == 0
    assert len(receiver.came) == 1
    await posts.aclose()


async def test_stricter_rules_share_no_connection(receiver: Receiver) -> None:
    lenient, strict = Posts(loopback=True), Posts()
    assert (await lenient.post(receiver.url, [SECRET], "m", b'{"type": "x"}')).accepted
    with pytest.raises(UnsafeUrl, match="does not resolve to a public address"):
        await strict.post(receiver.url, [SECRET], "m", b"{}")
    await lenient.aclose()
    await strict.aclose()


async def send_two_at_once(server: Server, connections: KeptConnections) -> None:
    url, headers = f"http://127.0.0.1:{server.port}/", dict[str | bytes, str | bytes]()
    first, second = (connections.stream("POST", url, headers, b"{}", repeatable=True) for _ in range(2))
    async with first as first_answer, second as second_answer:
        await first_answer.aread()
        await second_answer.aread()


@pytest.mark.parametrize(
    ("limit", "requests"),
    [
        pytest.param({"most_idle": 1}, [1, 1, 2], id="few connections stay open"),
        pytest.param({"oldest_ms": 0}, [1] * 4, id="an old connection is opened anew and its address checked again"),
    ],
)
async def test_connections_stay_open_within_limits(limit: dict[str, Any], requests: list[int]) -> None:
    async with serving() as (server, _):
        connections = KeptConnections(httpcore.AsyncConnectionPool(), **limit)
        await send_two_at_once(server, connections)
        await send_two_at_once(server, connections)
        assert sorted(server.requests) == requests
        await connections.aclose()
