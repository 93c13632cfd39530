"""One attempt: to the address that was checked, under the name that was given, and no longer than it may take."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.responses import Response, StreamingResponse

from service.core.outgoing.connections import UnsafeUrl
from service.core.outgoing.http import Posts
from tests.receivers import SECRET, Receiver


async def test_post_refuses_a_name_that_resolves_to_loopback(receiver: Receiver) -> None:
    strict = Posts()
    with pytest.raises(UnsafeUrl, match="localhost does not resolve to a public address"):
        await strict.post(receiver.url, [SECRET], "m", b"{}")
    assert receiver.came == []
    await strict.aclose()


async def test_post_returns_the_response(receiver: Receiver) -> None:
    receiver.say = lambda _: Response("wait", 429, {"Retry-After": "7"})
    here = Posts(loopback=True)
    answer = await here.post(receiver.url, [SECRET], "m", b'{"type": "x"}')
    assert (answer.status, answer.body, answer.retry_after, answer.accepted) == (429, b"wait", "7", False)
    headers, body = receiver.came[0]
    assert (body, headers["webhook-id"]) == (b'{"type": "x"}', "m")
    assert headers["host"] == receiver.url.removeprefix("https://").removesuffix("/aap")
    await here.aclose()


async def test_post_verifies_the_certificate(receiver: Receiver) -> None:
    here = Posts(loopback=True)
    port = receiver.url.rsplit(":", 1)[1]
    answer = await here.post(f"https://127.0.0.2:{port}", [SECRET], "m", b"{}")
    assert answer.status == 0
    assert receiver.came == []
    await here.aclose()


async def test_post_returns_status_0_for_an_absent_receiver(certificate: Path) -> None:
    here = Posts(loopback=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for url in (f"https://localhost:{port}/", "https://nobody.invalid/"):
        answer = await here.post(url, [SECRET], "m", b"{}")
        assert (answer.status, answer.accepted) == (0, False)
        assert answer.error
    await here.aclose()


async def test_post_error_names_no_address(certificate: Path) -> None:
    here = Posts(loopback=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = await here.post(f"https://localhost:{port}/", [SECRET], "m", b"{}")
    assert answer.error == "the connection failed"
    assert "ConnectError" in answer.detail
    await here.aclose()


async def test_unsafe_url_error_names_no_address() -> None:
    here = Posts()
    with pytest.raises(UnsafeUrl) as refused:
        await here.post("https://localhost/", [SECRET], "m", b"{}")
    assert "127.0.0.1" not in refused.value.message
    assert "::1" not in refused.value.message
    await here.aclose()


async def test_post_times_out_on_a_silent_receiver(certificate: Path) -> None:
    here = Posts(loopback=True, attempt_s=0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        answer = await here.post(f"https://localhost:{silent.getsockname()[1]}/", [SECRET], "m", b"{}")
    assert answer.status == 0
    assert "no response within" in answer.error
    await here.aclose()


async def test_post_limits_the_response_size(receiver: Receiver) -> None:
    receiver.say = lambda _: Response("x" * 5_000_000)
    here = Posts(loopback=True)
    answer = await here.post(receiver.url, [SECRET], "m", b'{"type": "x"}')
    assert answer.accepted
    assert len(answer.body) < 1_000_000
    await here.aclose()


@pytest.mark.parametrize("status", [204, 200, 500])
async def test_post_keeps_the_status_of_a_broken_off_response(receiver: Receiver, status: int) -> None:
    """A receiver that accepted the message does not get it again."""
    receiver.say = lambda _: Response("x", status, {"content-length": "10"})
    here = Posts(loopback=True)
    answer = await here.post(receiver.url, [SECRET], "m", b'{"type": "x"}')
    assert (answer.status, answer.accepted) == (status, status != 500)
    await here.aclose()


async def test_post_keeps_the_status_of_an_endless_response(receiver: Receiver) -> None:
    async def trickle() -> AsyncIterator[bytes]:
        yield b"x"
        await answered.wait()

    answered = asyncio.Event()
    receiver.say = lambda _: StreamingResponse(trickle())
    here = Posts(loopback=True, attempt_s=1)
    answer = await here.post(receiver.url, [SECRET], "m", b'{"type": "x"}')
    assert (answer.status, answer.accepted) == (200, True)
    await here.aclose()
