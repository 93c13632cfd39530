"""`python -m service` as a process: it reports why it does not start, and stops at once with requests waiting."""

import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from redis import Redis

from demo.stacks import find_ports
from launch.checks import is_healthy
from launch.server import running_server
from launch.stops import wait_until
from service.assembly import assemble
from service.core.settings import CHECKOUT, Settings
from service.core.store.connection.formats import check_format
from tests.builders import make_agent, make_pending
from tests.logs import read_lines


def started(url: str, **settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "service"],
        cwd=CHECKOUT,
        env=environ(url, settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def service(url: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    process = started(url, **settings)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def environ(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
    return {**kept, "SAYSO_REDIS_URL": url, **{f"SAYSO_{name.upper()}": value for name, value in settings.items()}}


async def test_it_stops_at_once_though_somebody_waits(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        await check_format(clean_store_url)
        key = await make_agent(wiring, "demo")
        record = await make_pending(wiring)
    port = find_ports()
    with service(clean_store_url, port=str(port)) as process, Redis.from_url(clean_store_url) as redis:
        assert wait_until(lambda: is_healthy("127.0.0.1", port), 60)
        async with (
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {key}"}, timeout=60
            ) as client,
            client.stream("GET", f"/api/v1/runs/{record.run.id}/events/stream") as stream,
        ):
            lines = stream.aiter_lines()
            assert "run_paused" in await anext(lines)
            assert redis.pubsub_numsub(f"sayso:changes:{record.run.id}")[0][1] == 1
            process.send_signal(signal.SIGTERM)
            rest = [line async for line in lines]
        assert not [line for line in rest if line.startswith("event: end")]
        assert process.wait(30) in (0, -signal.SIGTERM)


def test_stopping_service_says_so_and_resets_no_request(clean_store_url: str) -> None:
    """Each client sends one request after the other, and uses another server after a response closes its connection."""
    port = find_ports()
    place = f"http://127.0.0.1:{port}"

    def send_until_told_to_close() -> int:
        with httpx.Client(base_url=place, timeout=30) as client:
            for count in itertools.count(1):
                answer = client.get("/healthz")
                assert answer.status_code == 200
                if answer.headers.get("connection") == "close":
                    return count
        raise AssertionError

    with service(clean_store_url, port=str(port)) as process, ThreadPoolExecutor(8) as threads:
        assert wait_until(lambda: is_healthy("127.0.0.1", port), 60)
        assert httpx.get(f"{place}/readyz").status_code == 200
        clients = [threads.submit(send_until_told_to_close) for _ in range(8)]
        process.send_signal(signal.SIGTERM)
        assert all(client.result(60) for client in clients)
        draining = httpx.get(f"{place}/readyz")
        assert (draining.status_code, draining.headers["connection"]) == (503, "close")
        assert draining.json()["detail"].startswith("draining: ")
        assert process.wait(30) in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("settings", "code", "says"), [({"port": "none"}, 2, "SAYSO_PORT"), ({"webhook_secret": "x"}, 2, "whsec_")]
)
def test_it_says_which_setting_is_wrong(store_url: str, settings: dict[str, str], code: int, says: str) -> None:
    with service(store_url, **settings) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert says in said
    assert "Traceback" not in said


def test_it_does_not_start_on_a_store_that_forgets(clean_store_url: str) -> None:
    with Redis.from_url(clean_store_url) as redis:
        redis.config_set("appendfsync", "everysec")
        try:
            with service(clean_store_url) as process:
                said, _ = process.communicate(timeout=60)
        finally:
            redis.config_set("appendfsync", "always")
    assert process.returncode == 1
    assert "appendfsync is everysec, not always" in said


def test_a_head_without_an_end_is_refused_and_a_long_body_is_no_head(clean_store_url: str) -> None:
    port = find_ports()
    with service(clean_store_url, port=str(port)):
        assert wait_until(lambda: is_healthy("127.0.0.1", port), 60)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client, suppress(ConnectionError):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ")
            for _ in range(100):
                client.sendall(b"x" * 65_536)
            pytest.fail("six megabytes of one header were taken")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client_of_two:
            for _ in range(2):
                body = {"name": "anna", "password": "x" * 200_000}
                refused = client_of_two.post("/api/v1/sessions", json=body)
                assert refused.status_code == 413, "too long for a stranger, and not a head (431)"


def test_a_wrong_store_address_is_named_before_any_waiting() -> None:
    port = find_ports()
    process = started(f"redis://:hunter2@127.0.0.1:{port}/0")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
    finally:
        process.kill()
        process.communicate()
    assert f"redis://127.0.0.1:{port}/0 does not answer: nothing listens there" in line
    assert "hunter2" not in line


def test_a_wrong_store_password_ends_the_start_at_once(clean_store_url: str) -> None:
    with Redis.from_url(clean_store_url) as redis:
        redis.config_set("requirepass", "the right one")
        try:
            with service(f"{clean_store_url}&password=wrong") as process:
                said, _ = process.communicate(timeout=60)
        finally:
            redis.config_set("requirepass", "")
    assert process.returncode == 1
    assert "it refuses the user or the password" in said


def test_the_service_logs_that_the_store_is_away(tmp_path: Path) -> None:
    port = find_ports()
    with running_server(tmp_path) as url:
        process = started(url, port=str(port))
        assert wait_until(lambda: is_healthy("127.0.0.1", port), 60)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "store_away" in line)
    finally:
        process.kill()
        process.communicate()
    assert url in line


def test_a_missing_policy_file_is_a_sentence(store_url: str, tmp_path: Path) -> None:
    with service(store_url, policy=str(tmp_path / "absent.yaml")) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = read_lines(said)
    assert line.error == (
        f"{tmp_path}/absent.yaml:1:1: the file cannot be read: No such file or directory; "
        "check its path and permissions"
    )


MISSPELT = "SAYSO_RULES_POLICY: there is no such setting; did you mean SAYSO_POLICY? See docs/settings.md."


def test_misspelt_setting_is_a_warning_with_the_near_name(store_url: str, tmp_path: Path) -> None:
    with service(store_url, rules_policy="rules.yaml", policy=str(tmp_path / "absent.yaml")) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 1, "only the absent file of rules ends it"
    assert read_lines(said)[0].fact("reason") == MISSPELT


def test_misspelt_setting_is_refused_in_production(store_url: str, tmp_path: Path) -> None:
    with service(
        store_url,
        rules_policy="rules.yaml",
        policy=str(tmp_path / "a.yaml"),
        env="production",
        public_url="https://desk.example",
    ) as process:
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, [line.error for line in read_lines(said)]) == (2, [MISSPELT])


def test_setting_one_letter_off_is_refused(store_url: str, tmp_path: Path) -> None:
    with service(store_url, polcy="rules.yaml", policy=str(tmp_path / "absent.yaml")) as process:
        said, _ = process.communicate(timeout=60)
    misspelt = MISSPELT.replace("SAYSO_RULES_POLICY", "SAYSO_POLCY")
    assert (process.returncode, [line.error for line in read_lines(said)]) == (2, [misspelt])
