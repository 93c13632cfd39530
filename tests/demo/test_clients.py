"""A client gets its answer through restarts of the service, and never asks for the same thing twice."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from demo.clients import Client, Refused
from sayso.records.suspensions import RunStatus

RUN = {"id": "run_1", "status": "completed", "result": {"text": "Done."}, "error": None}
EVENT = '{{"seq": {seq}, "at": "2026-11-21T12:03:04.120Z", "type": "warning", "data": {{}}, "hash": "h"}}'

Answer = Callable[[httpx.Request], httpx.Response]


def client_of(*answers: Answer) -> tuple[Client, list[httpx.Request]]:
    """Return a client whose requests are answered one after the other, and the list they are kept in."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answers[len(asked) - 1](request)

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://desk")
    return Client(http, "a key"), asked


def gone(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def away(request: httpx.Request) -> httpx.Response:
    return httpx.Response(503, json={"detail": "The store cannot be reached."})


def conflict(request: httpx.Request) -> httpx.Response:
    return httpx.Response(409, json={"detail": "Somebody was first."})


def run(request: httpx.Request) -> httpx.Response:
    return httpx.Response(201, json=RUN)


def stream(*seqs: int, breaks: bool = False, ends: bool = False) -> Answer:
    async def lines() -> AsyncIterator[bytes]:
        for seq in seqs:
            yield f"id: {seq}\nevent: warning\ndata: {EVENT.format(seq=seq)}\n\n".encode()
        if breaks:
            raise httpx.ReadError("cut off")
        if ends:
            yield b'event: end\ndata: {"status": "completed"}\n\n'

    return lambda request: httpx.Response(200, content=lines())


async def test_a_write_is_sent_again_with_its_key_while_the_service_is_away() -> None:
    client, asked = client_of(gone, away, run)

    started = await client.start_run("demo", "Hello", "Greeting", key="k1")

    assert started.status is RunStatus.COMPLETED
    assert [request.headers["Idempotency-Key"] for request in asked] == ["k1", "k1", "k1"]
    assert len({request.content for request in asked}) == 1
    assert asked[0].headers["Authorization"] == "Bearer a key"


async def test_a_refusal_is_final_and_told_in_the_services_own_words() -> None:
    client, asked = client_of(conflict)

    with pytest.raises(Refused, match=r"409: .*Somebody was first"):
        await client.start_run("demo", "Hello", "Greeting", key="k1")

    assert len(asked) == 1


async def test_a_broken_stream_is_taken_up_behind_the_last_event() -> None:
    client, asked = client_of(stream(1, 2, breaks=True), away, gone, stream(3), stream(4, ends=True))

    seqs = [entry.seq async for entry in client.follow("run_1")]

    assert seqs == [1, 2, 3, 4]
    assert [request.headers["Last-Event-ID"] for request in asked] == ["0", "2", "2", "2", "3"]


async def test_an_events_moment_is_read_to_the_millisecond() -> None:
    client, _ = client_of(stream(1, ends=True))

    (entry,) = [entry async for entry in client.follow("run_1")]

    assert entry.at_ms == 1795262584120
