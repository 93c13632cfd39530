"""Tests of the demo's client through restarts of the service."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from demo.clients import Client, Refused
from sayso.core.records.suspensions import RunStatus

RUN = {"id": "run_1", "status": "completed", "result": {"text": "Done."}, "error": None}
EVENT = '{{"seq": {seq}, "at": "2026-11-21T12:03:04.120Z", "type": "warning", "data": {{}}, "hash": "h"}}'

Answer = Callable[[httpx.Request], httpx.Response]


def client_of(*answers: Answer) -> tuple[Client, list[httpx.Request]]:
    """Return a client that gets these answers in turn, and the list of its requests."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return answers[len(requests) - 1](request)

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://desk")
    return Client(http, "a key"), requests


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


async def test_start_run_repeats_with_its_key_while_unavailable() -> None:
    client, requests = client_of(gone, away, run)

    started = await client.start_run("demo", "Hello", "Greeting", key="k1")

    assert started.status is RunStatus.COMPLETED
    assert [request.headers["Idempotency-Key"] for request in requests] == ["k1", "k1", "k1"]
    assert len({request.content for request in requests}) == 1
    assert requests[0].headers["Authorization"] == "Bearer a key"


async def test_start_run_raises_a_refusal_at_once() -> None:
    client, requests = client_of(conflict)

    with pytest.raises(Refused, match=r"409: .*Somebody was first"):
        await client.start_run("demo", "Hello", "Greeting", key="k1")

    assert len(requests) == 1


async def test_follow_resumes_a_broken_stream_after_the_last_event() -> None:
    client, requests = client_of(stream(1, 2, breaks=True), away, gone, stream(3), stream(4, ends=True))

    seqs = [entry.seq async for entry in client.follow("run_1")]

    assert seqs == [1, 2, 3, 4]
    assert [request.headers["Last-Event-ID"] for request in requests] == ["0", "2", "2", "2", "3"]


async def test_follow_reads_event_times_to_the_millisecond() -> None:
    client, _ = client_of(stream(1, ends=True))

    (entry,) = [entry async for entry in client.follow("run_1")]

    assert entry.at_ms == 1795262584120
