"""One attempt: to the address that was checked, under the name that was given, and no longer than it may take."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.responses import Response, StreamingResponse

from service.delivery.addresses import UnsafeUrl
from service.delivery.http import Posts
from tests.receivers import SECRET, Receiver


async def test_a_name_that_leads_to_this_machine_is_not_connected_to(receiver: Receiver) -> None:
    strict = Posts()
    with pytest.raises(UnsafeUrl, match="localhost does not resolve to a public address"):
        await strict.post(receiver.url, SECRET, "m", b"{}")
    assert receiver.came == []
    await strict.aclose()


async def test_what_is_answered_is_told(receiver: Receiver) -> None:
    receiver.say = lambda _: Response("wait", 429, {"Retry-After": "7"})
    here = Posts(loopback=True)
    answer = await here.post(receiver.url, SECRET, "m", b'{"type": "x"}')
    assert (answer.status, answer.body, answer.retry_after, answer.accepted) == (429, b"wait", "7", False)
    headers, body = receiver.came[0]
    assert (body, headers["webhook-id"]) == (b'{"type": "x"}', "m")
    assert headers["host"] == receiver.url.removeprefix("https://").removesuffix("/aap")
    await here.aclose()


async def test_the_certificate_has_to_be_for_the_name(receiver: Receiver) -> None:
    here = Posts(loopback=True)
    port = receiver.url.rsplit(":", 1)[1]
    answer = await here.post(f"https://127.0.0.2:{port}", SECRET, "m", b"{}")
    assert answer.status == 0
    assert receiver.came == []
    await here.aclose()


async def test_nobody_there_is_no_error_of_ours(certificate: Path) -> None:
    here = Posts(loopback=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for url in (f"https://localhost:{port}/", "https://nobody.invalid/"):
        answer = await here.post(url, SECRET, "m", b"{}")
        assert (answer.status, answer.accepted) == (0, False)
        assert answer.error
    await here.aclose()


async def test_what_failed_is_told_without_any_address(certificate: Path) -> None:
    here = Posts(loopback=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = await here.post(f"https://localhost:{port}/", SECRET, "m", b"{}")
    assert answer.error == "the connection failed"
    assert "ConnectError" in answer.detail
    await here.aclose()


async def test_a_name_that_leads_inside_is_refused_without_its_address() -> None:
    here = Posts()
    with pytest.raises(UnsafeUrl) as refused:
        await here.post("https://localhost/", SECRET, "m", b"{}")
    assert "127.0.0.1" not in refused.value.message
    assert "::1" not in refused.value.message
    await here.aclose()


async def test_who_never_answers_is_not_waited_for(certificate: Path) -> None:
    here = Posts(loopback=True, attempt_s=0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        answer = await here.post(f"https://localhost:{silent.getsockname()[1]}/", SECRET, "m", b"{}")
    assert answer.status == 0
    assert "no response within" in answer.error
    await here.aclose()


async def test_a_flood_is_not_read_to_its_end(receiver: Receiver) -> None:
    receiver.say = lambda _: Response("x" * 5_000_000)
    here = Posts(loopback=True)
    answer = await here.post(receiver.url, SECRET, "m", b'{"type": "x"}')
    assert answer.accepted
    assert len(answer.body) < 1_000_000
    await here.aclose()


@pytest.mark.parametrize("status", [204, 200, 500])
async def test_an_answer_that_breaks_off_is_the_answer_all_the_same(receiver: Receiver, status: int) -> None:
    """Whoever said that the message was taken is not to be told again for seven days."""
    receiver.say = lambda _: Response("x", status, {"content-length": "10"})
    here = Posts(loopback=True)
    answer = await here.post(receiver.url, SECRET, "m", b'{"type": "x"}')
    assert (answer.status, answer.accepted) == (status, status != 500)
    await here.aclose()


async def test_an_answer_that_never_ends_is_not_waited_for_and_counts(receiver: Receiver) -> None:
    async def trickle() -> AsyncIterator[bytes]:
        yield b"x"
        await answered.wait()

    answered = asyncio.Event()
    receiver.say = lambda _: StreamingResponse(trickle())
    here = Posts(loopback=True, attempt_s=1)
    answer = await here.post(receiver.url, SECRET, "m", b'{"type": "x"}')
    assert (answer.status, answer.accepted) == (200, True)
    await here.aclose()
