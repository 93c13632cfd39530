"""Two services behind a proxy restart one after the other under load, and no request fails.

REQUESTS=20000 sends more requests.
"""

import os
import signal
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Lock

import httpx
import pytest

from demo.stacks import find_ports, neutral_environ
from launch.stops import wait_until
from service.assembly import assemble
from service.core.settings import CHECKOUT, Settings
from service.core.settings.limits import UNLIMITED
from service.core.store.connection.formats import check_format
from tests.builders import make_agent
from tests.distribution.proxies import PROXIES, Proxy, running_proxy
from tests.journeys.stacks import PATIENCE_S

REQUESTS = int(os.environ.get("REQUESTS") or 2_000)
CLIENTS = 4
START_S = 300  # a service starts beside the load
CALL = {"tool": "pay_back", "args": {"order": "4711"}, "definition": {"description": "Pay.", "parameters": {}}}


class Services:
    """Two services of one store on ports of this machine, restarted one at a time."""

    def __init__(self, store_url: str, public_url: str, ports: tuple[int, int]) -> None:
        settings = {"SAYSO_REDIS_URL": store_url, "SAYSO_PUBLIC_URL": public_url, **UNLIMITED}
        self._environ = {**neutral_environ(), **settings, "SAYSO_TRUSTED_PROXIES": "127.0.0.1"}
        self._children = {port: self._start(port) for port in ports}

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        environ = {**self._environ, "SAYSO_PORT": str(port)}
        return subprocess.Popen([sys.executable, "-m", "service"], cwd=CHECKOUT, env=environ)

    def restart_each(self) -> None:
        """Stop each service, start it again, and go on when it is ready."""
        for port, child in list(self._children.items()):
            child.send_signal(signal.SIGTERM)
            assert child.wait(PATIENCE_S) in (0, -signal.SIGTERM)
            self._children[port] = self._start(port)
            self.await_ready()

    def await_ready(self) -> None:
        for port in self._children:
            assert wait_until(partial(_is_ready, port), START_S)

    def kill(self) -> None:
        for child in self._children.values():
            child.kill()
            child.wait()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


class Load:
    """Clients that ask, read and wait, each without a second try, until they are stopped."""

    def __init__(self, url: str, key: str, authority: Path) -> None:
        self._url, self._headers = f"{url}/api/v1/suspensions", {"Authorization": f"Bearer {key}"}
        self._trust = ssl.create_default_context(cafile=str(authority))
        self._lock, self.stopped, self.answers = Lock(), Event(), Counter[str]()

    @property
    def sent(self) -> int:
        return self.answers.total()

    def run(self, name: int) -> None:
        with httpx.Client(headers=self._headers, verify=self._trust, timeout=70) as client:
            for number in count():
                if self.stopped.is_set():
                    return
                asked = self._send(client, "POST", self._url, {"Idempotency-Key": f"{name}-{number}"})
                if asked is not None:
                    wait = "?wait=1s" if number % 50 == 0 else ""
                    self._send(client, "GET", f"{self._url}/{asked.json()['id']}{wait}")

    def _send(
        self, client: httpx.Client, method: str, url: str, headers: dict[str, str] | None = None
    ) -> httpx.Response | None:
        body = {"mode": "poll", "calls": [CALL]} if method == "POST" else None
        try:
            answer = client.request(method, url, json=body, headers=headers)
        except httpx.TransportError as error:
            self._count(f"{method} {error!r}")
            return None
        self._count("right" if answer.is_success else f"{method} {answer.status_code} {answer.text[:200]}")
        return answer if answer.is_success else None

    def _count(self, answer: str) -> None:
        with self._lock:
            self.answers[answer] += 1


@contextmanager
def running(services: Services) -> Iterator[None]:
    try:
        services.await_ready()
        yield
    finally:
        services.kill()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("proxy", PROXIES, ids=lambda proxy: proxy.name)
async def test_rolling_restart_fails_no_request(proxy: Proxy, clean_store_url: str, tmp_path: Path) -> None:
    port, ports = find_ports(), (find_ports(), find_ports())
    file = proxy.write(tmp_path, port, ports)
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        await check_format(clean_store_url)
        await wiring.reviewers.add("admin", "correct horse battery", ("reviewer", "admin"))
        key = await make_agent(wiring, "demo")
    url = f"https://127.0.0.1:{port}"
    load, services = Load(url, key, tmp_path / "authority.pem"), Services(clean_store_url, url, ports)
    with ExitStack() as stack:
        stack.enter_context(running(services))
        stack.enter_context(running_proxy(proxy, file))
        _await_proxy(load, url)
        threads = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        stack.callback(load.stopped.set)
        clients = [threads.submit(load.run, name) for name in range(CLIENTS)]
        restarts = 0
        while load.sent < REQUESTS:
            services.restart_each()
            restarts += 1
    for client in clients:
        client.result()
    print(f"{proxy.name}: {restarts} rolling restarts, {dict(load.answers)}")
    assert set(load.answers) == {"right"}, load.answers
    assert load.sent >= REQUESTS


def _await_proxy(load: Load, url: str) -> None:
    def answers() -> bool:
        try:
            return httpx.get(f"{url}/readyz", verify=load._trust).status_code == 200
        except httpx.TransportError:
            return False

    assert wait_until(answers, PATIENCE_S)
