"""With an egress proxy everything for the public net goes through it, and internal receivers are reached without it."""

import asyncio
import os
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from pydantic import ValidationError

from service.channels.base import open_client
from service.channels.kinds import open_channels
from service.core.outgoing.connections import UnsafeUrl
from service.core.outgoing.http import Posts, _trust
from service.core.settings import Settings
from service.core.settings.receivers import read_receivers
from tests.receivers import SECRET, Receiver

LOGIN = "out:p%40ss"


@dataclass
class Proxy:
    """A proxy that takes CONNECT alone, with the login of `LOGIN`, and refuses hosts in `refused`."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    refused: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return f"http://{LOGIN}@127.0.0.1:{self.port}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, place, _ = head.split(None, 2)
        host, _, port = place.rpartition(":")
        self.asked.append(place)
        login = f"proxy-authorization: basic {b64encode(b'out:p@ss').decode()}".lower()
        if method != "CONNECT" or login not in head.lower() or host in self.refused:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        behind_reader, behind = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with suppress(OSError, asyncio.CancelledError):  # the test ends while a connection is open
            await asyncio.gather(_copy(reader, behind), _copy(behind_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(65_536):
        writer.write(part)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def proxying() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.answer, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


def place_of(receiver: Receiver) -> str:
    return receiver.url.removeprefix("https://").removesuffix("/aap")


async def test_messages_go_through_the_proxy_which_resolves_their_names(receiver: Receiver) -> None:
    async with proxying() as proxy:
        posts = Posts(proxy=proxy.url)
        answer = await posts.post(receiver.url, [SECRET], "m", b'{"type": "x"}')
        await posts.aclose()
    assert (answer.status, proxy.asked) == (204, [place_of(receiver)])
    assert receiver.came[0][0]["host"] == place_of(receiver)


async def test_internal_receivers_are_reached_without_the_proxy(receiver: Receiver) -> None:
    async with proxying() as proxy:
        posts = Posts(loopback=True, internal=read_receivers((place_of(receiver),)), proxy=proxy.url)
        answer = await posts.post(receiver.url, [SECRET], "m", b'{"type": "x"}')
        await posts.aclose()
    assert (answer.status, proxy.asked) == (204, [])


async def test_private_addresses_are_refused_before_the_proxy() -> None:
    async with proxying() as proxy:
        posts = Posts(proxy=proxy.url)
        for url in ("https://10.1.2.3/", "https://169.254.169.254/", "https://[::1]/", "http://hooks.example.com/"):
            with pytest.raises(UnsafeUrl):
                await posts.post(url, [SECRET], "m", b"{}")
        await posts.aclose()
    assert proxy.asked == []


async def test_refusal_and_absence_of_the_proxy_are_failed_attempts(receiver: Receiver) -> None:
    async with proxying() as proxy:
        proxy.refused = ("localhost",)
        posts = Posts(proxy=proxy.url)
        answer = await posts.post(receiver.url, [SECRET], "m", b"{}")
        assert (answer.status, answer.error) == (0, "the egress proxy refused the connection")
        await posts.aclose()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    away = Posts(proxy=f"http://127.0.0.1:{port}")
    assert (await away.post(receiver.url, [SECRET], "m", b"{}")).error == "the connection failed"
    await away.aclose()
    assert receiver.came == []


async def test_channels_send_through_the_proxy(
    receiver: Receiver, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.setenv(name, "")  # and is put back afterwards
    async with proxying() as proxy:
        open_channels(Settings(egress_proxy=proxy.url, internal_receivers=("n8n", "10.0.0.0/8")))
        async with open_client() as client:
            assert (await client.post(receiver.url, json={"type": "x"})).status_code == 204
        session = aiohttp.ClientSession(trust_env=True)
        async with session, session.post(receiver.url, json={"type": "x"}, ssl=_trust()) as response:
            assert response.status == 204
    assert proxy.asked == [place_of(receiver)] * 2
    assert os.environ["NO_PROXY"] == "n8n,10.0.0.0/8"


@pytest.mark.parametrize("url", ["proxy:3128", "socks5://proxy:1080", "http://proxy", "http://proxy:x", "http://p:1/a"])
def test_setting_refuses_what_is_no_proxy(url: str) -> None:
    with pytest.raises(ValidationError, match="write http://proxy:3128"):
        Settings(egress_proxy=url)
