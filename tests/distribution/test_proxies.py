"""Tests of the example configurations of proxies, each by its own proxy."""

import re
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import httpx
import pytest

from demo.stacks import find_ports
from launch.stops import wait_until
from service.edge.api.aap.requests import LONGEST_WAIT_S
from service.edge.api.dependencies import wait_of
from service.edge.api.routes import REVALIDATE_S
from service.edge.web.live import PING_S
from tests.distribution.proxies import PROXIES, Proxy, running_proxy
from tests.distribution.tools import DISTRIBUTION
from tests.journeys.stacks import PATIENCE_S


@pytest.mark.parametrize("proxy", PROXIES, ids=lambda proxy: proxy.name)
def test_example_of_a_proxy_is_valid(proxy: Proxy, tmp_path: Path) -> None:
    command = proxy.command(proxy.check, proxy.write(tmp_path, 20_443, (20_001, 20_002)))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


async def test_long_polls_and_streams_write_before_a_proxy_gives_up() -> None:
    longest_s = max(await wait_of("60s"), LONGEST_WAIT_S)
    assert longest_s == 50
    assert max(PING_S, REVALIDATE_S) <= 15
    for proxy in PROXIES:
        text = (DISTRIBUTION / "proxies" / proxy.example).read_text(encoding="utf-8")
        patience = re.findall(r"(?:read_timeout|timeout server) (\d+)s", text)
        assert patience
        assert min(map(int, patience)) > longest_s


class Stopping(BaseHTTPRequestHandler):
    """A service that answers requests, and says that it is not ready."""

    seen: ClassVar = Counter[str]()

    def do_GET(self) -> None:
        self.seen[self.path] += 1
        self._answer(503 if self.path == "/readyz" else 200)

    def do_POST(self) -> None:
        self._answer(201)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def serving(port: int) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", port), Stopping) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield
        finally:
            server.shutdown()


@pytest.mark.parametrize("proxy", PROXIES, ids=lambda proxy: proxy.name)
def test_proxy_asks_a_living_service_where_none_is_ready(proxy: Proxy, tmp_path: Path) -> None:
    """In a rolling restart one service stops before the proxy has seen that the other is back."""
    port, ports = find_ports(), (find_ports(), find_ports())
    file = proxy.write(tmp_path, port, ports)
    checked = set(re.findall(r"uri (/\w+)", file.read_text()))
    trust = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
    Stopping.seen.clear()

    def status() -> int:
        try:
            return httpx.post(f"https://127.0.0.1:{port}/", content=b"{}", verify=trust, timeout=PATIENCE_S).status_code
        except httpx.TransportError:
            return 0

    with running_proxy(proxy, file):
        assert wait_until(lambda: status() in (502, 503), PATIENCE_S), (tmp_path / "output").read_text()
        with serving(ports[0]):
            assert wait_until(lambda: all(Stopping.seen[path] > 1 for path in checked), PATIENCE_S)
            assert [status() for _ in range(10)] == [201] * 10
