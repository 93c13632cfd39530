"""The AG-UI proxy before agents and clients that send anything but AG-UI. Nothing of this reaches the desk."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from sayso.adapters.agui import make_app, proxies, serving
from sayso.client import AsyncClient
from tests.fakes.serving import serving as serve

RUN_INPUT: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": [], "forwardedProps": {}}
STARTED = b'data: {"type":"RUN_STARTED"}\n\n'
SEEN: list[dict[str, str]] = []


async def send_endless_event(_: Request) -> Response:
    async def send() -> AsyncIterator[bytes]:
        yield STARTED
        while True:
            yield b'data: "' + b"x" * 100_000
            await asyncio.sleep(0)  # the server notices that its client has gone

    return StreamingResponse(send())


async def send_text(_: Request) -> Response:
    return Response(b"data: <html>\n\n")


async def end_early(_: Request) -> Response:
    return Response(STARTED)


async def redirect(request: Request) -> Response:
    return RedirectResponse(request.url_for("echo"), 307)


async def echo(request: Request) -> Response:
    SEEN.append(dict(request.headers))
    return Response(STARTED + b'data: {"type":"RUN_FINISHED"}\n\n')


async def ask_nonsense(_: Request) -> Response:
    outcome = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "tool_call", "toolCallId": "unknown"}]}
    return Response(f"data: {json.dumps({'type': 'RUN_FINISHED', 'outcome': outcome})}\n\n")


async def send_garbled(_: Request) -> Response:
    return Response(b"no gzip", headers={"content-encoding": "gzip"})


AGENTS = (send_endless_event, send_text, end_early, redirect, echo, ask_nonsense, send_garbled)


@pytest.fixture(scope="module")
def agents() -> Iterator[str]:
    """Agents at paths of their own."""
    with serve(Starlette(routes=[Route(f"/{agent.__name__}", agent, methods=["POST"]) for agent in AGENTS])) as url:
        yield url


@pytest.fixture
def proxy(agents: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A proxy before the agent that the test names, with a desk that is away."""
    SEEN.clear()
    app = make_app(f"{agents}/{request.param}", desk=AsyncClient("http://127.0.0.1:9", "key", patience_s=0))
    with serve(app) as url:
        yield url


def send(url: str, run_input: Any = RUN_INPUT, **headers: str) -> list[Any]:
    """Return the events of a run."""
    response = httpx.post(url, json=run_input, headers=httpx.Headers(headers, encoding="latin-1"), timeout=60)
    return [json.loads(line[5:]) for line in response.text.splitlines() if line.startswith("data:")]


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("send_endless_event", "more than 4000000 bytes"),
        ("send_text", "not strict JSON"),
        ("end_early", "ended before its run did"),
        ("redirect", "answered 307"),
        ("nowhere", "answered 404"),
        ("ask_nonsense", "which it has not sent"),
        ("send_garbled", "answer was cut off. Resume"),
    ],
    indirect=["proxy"],
)
def test_hostile_agent_ends_the_run_with_an_error(proxy: str, message: str) -> None:
    end = send(proxy)[-1]
    assert end["type"] == "RUN_ERROR"
    assert message in end["message"]
    assert SEEN == []


@pytest.mark.parametrize("proxy", ["echo"], indirect=True)
def test_agent_gets_the_authorization_and_no_other_header(proxy: str) -> None:
    language = b"\xfc".decode("latin-1")
    assert (
        send(proxy, authorization="Bearer me", cookie="a=b", **{"accept-language": language})[-1]["type"]
        == "RUN_FINISHED"
    )
    (seen,) = SEEN
    assert seen["accept-language"] == language
    assert seen["authorization"] == "Bearer me"
    assert "cookie" not in seen


@pytest.mark.parametrize("proxy", ["echo"], indirect=True)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threadId": 7}, "no threadId"),
        ({"runId": ""}, "no runId"),
        ({"forwarded_props": {}}, "member forwarded_props"),
        ({"messages": [{"tool_calls": []}]}, "member tool_calls"),
        ({"forwardedProps": {"Command": {}}}, "Remove forwardedProps.Command"),
        ({"forwardedProps": {"nodeName": "pay"}}, "Remove forwardedProps.nodeName"),
        ({"resume": {"interruptId": "i"}}, "all its last interrupts"),
        ({"resume": [7]}, "all its last interrupts"),
        ({"resume": [{"interruptId": "../runs", "status": "resolved"}]}, "all its last interrupts"),
    ],
)
def test_other_inputs_do_not_reach_the_agent(proxy: str, changes: dict[str, Any], message: str) -> None:
    end = send(proxy, RUN_INPUT | changes)[-1]
    assert end["type"] == "RUN_ERROR"
    assert message in end["message"]
    assert SEEN == []


@pytest.mark.parametrize("proxy", ["echo"], indirect=True)
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 422), (b"[]", 422), (b'{"a":1,"a":2}', 422), (b"\xff", 422), (b" " * 4_000_001, 413)],
)
def test_input_that_is_no_json_object_is_refused(proxy: str, body: bytes, status: int) -> None:
    assert httpx.post(proxy, content=body).status_code == status
    assert SEEN == []


@pytest.mark.parametrize("proxy", ["echo"], indirect=True)
def test_slow_input_is_given_up(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_SLOWEST_INPUT_S", 0.2)
    host, port = proxy.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
        assert b"422" in client.recv(1000).partition(b"\r\n")[0]


async def test_run_of_a_client_that_does_not_read_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "_SLOWEST_S", 0.1)
    ended = asyncio.Event()

    async def send_much(_: httpx.Request) -> httpx.Response:
        async def parts() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield STARTED
            yield b'data: {"type":"RUN_FINISHED"}\n\n'
            ended.set()

        return httpx.Response(200, content=parts())

    async with httpx.AsyncClient(transport=httpx.MockTransport(send_much)) as agent:
        proxy = proxies.AgUiProxy("http://agent", AsyncClient("http://127.0.0.1:9", "key"), agent)
        events = proxy.run(RUN_INPUT, {})
        await anext(events)
        await asyncio.wait_for(ended.wait(), 30)
        assert len([event async for event in events]) < 100
