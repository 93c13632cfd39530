"""Connections are bounded: in the size of a head, in the time a request takes, and in how long they stay idle."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from demo.model import create_app as create_model
from service.core.settings import Settings
from service.edge.http.connections import ServerConfig
from tests.service.servers import served

SOON_S = 30
"""Far more than the limits that the tests set, so that a slow machine does not fail them."""

HEAD = b"POST /api/v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def address(module_store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    policy = tmp_path_factory.mktemp("limits") / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    settings = Settings(
        redis_url=module_store_url, policy=policy, keep_alive_s=1, request_timeout_s=1, head_limit_bytes=8192
    )
    with served(settings) as url:
        yield "127.0.0.1", urlsplit(url).port or 0


@contextmanager
def connected(address: tuple[str, int], *parts: bytes) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=SOON_S) as client:
        for part in parts:
            client.sendall(part)
        yield client


def read_all(client: socket.socket) -> bytes:
    """All that comes until the service closes the connection."""
    return b"".join(iter(lambda: client.recv(65_536), b""))


def test_head_and_body_of_an_answer_arrive_together(address: tuple[str, int]) -> None:
    with connected(address, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        head, _, body = client.recv(65_536).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body


def test_half_open_requests_are_closed_after_the_request_timeout(address: tuple[str, int]) -> None:
    beginnings = (b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nX-Slow: a", b"\r\n")
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(address, beginnings[index % 4])) for index in range(100)]
        answers = [read_all(client) for client in clients]
    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"", b"HTTP/1.1 408 Request Timeout"}
    assert b"did not arrive within 1 s" in answers[1]
    assert answers[0] == b""


def test_a_body_that_stops_arriving_is_answered_with_408(address: tuple[str, int]) -> None:
    with connected(address, HEAD, b'Content-Length: 1000\r\n\r\n{"name": ') as client:
        assert read_all(client).startswith(b"HTTP/1.1 408 ")


def test_a_refused_request_whose_body_never_ends_gets_one_answer(address: tuple[str, int]) -> None:
    refused = HEAD.replace(b"sessions", b"runs") + b"Content-Length: 1000\r\n\r\n{"
    with connected(address, refused) as client:
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_head_over_the_limit_is_refused_at_any_size(address: tuple[str, int]) -> None:
    one = b"X-Long: " + b"x" * 66_000 + b"\r\n"
    many = b"".join(b"X-%d: %s\r\n" % (index, b"x" * 100) for index in range(100))
    for headers in (one, many):
        with connected(address, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n") as client:
            answer = client.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"over 8192 bytes" in answer
    path = b"/healthz?" + b"x" * 9_000
    with connected(address, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        assert client.recv(65_536).startswith(b"HTTP/1.1 431 ")


def test_a_head_below_the_limit_and_a_long_body_are_taken(address: tuple[str, int]) -> None:
    with httpx.Client(base_url=f"http://{address[0]}:{address[1]}", timeout=SOON_S) as client:
        assert client.get("/healthz", headers={"X-Long": "x" * 7_000}).status_code == 200
        body = {"name": "anna", "password": "x" * 15_000}
        assert client.post("/api/v1/sessions", json=body).status_code == 422


def test_an_idle_connection_is_closed_after_the_keep_alive_time(address: tuple[str, int]) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected(address, ask, ask) as client:
        assert read_all(client).count(b"HTTP/1.1 200") == 2


def test_every_server_keeps_idle_connections_for_75_s_by_default(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert settings.keep_alive_s == 75
    assert ServerConfig(create_model("/v1", ()), settings).timeout_keep_alive == 75
    assert ServerConfig(create_model("/v1", ()), Settings(keep_alive_s=300)).timeout_keep_alive == 300
