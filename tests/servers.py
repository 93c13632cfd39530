"""A server at one address that is replaced by a copy of its data: a replica, or files of an earlier time."""

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path

from redis import Redis

from launch.server import running_server
from launch.stops import wait_until
from service.core.settings import socket_path, store_url_at

STORED = "appendonlydir"
_WITHIN_S = 20


class Address:
    """A socket's path that leads to one server, and after a fail-over to its replica."""

    def __init__(self, folder: Path, servers: ExitStack) -> None:
        self._folder, self._servers, self._numbers = folder, servers, count(1)
        self._path = folder / "store.sock"
        self.url = store_url_at(self._path)
        self._place, self.primary = self._begin()
        self.replica: Redis | None = None
        self._replica_place = self._place
        self._lead_to(self._place)

    def add_replica(self) -> None:
        """Start a replica, and wait until it has everything."""
        port = _find_port()
        self.primary.config_set("port", port)
        self.primary.config_set("repl-diskless-sync-delay", 0)
        self._replica_place, self.replica = self._begin()
        self.replica.replicaof("127.0.0.1", port)
        self.await_replica()

    def await_replica(self) -> None:
        """Wait until the replica has everything that the primary has."""
        replica = self.replica
        assert replica is not None
        assert wait_until(lambda: replica.info("replication").get("master_link_status") == "up", _WITHIN_S)
        assert self.primary.waitaof(0, 1, _WITHIN_S * 1000)[1] == 1

    def part_replica(self) -> None:
        """Let the replica get no further writes, as one that lags."""
        assert self.replica is not None
        self.replica.replicaof("NO", "ONE")

    def fail_over(self, by: signal.Signals = signal.SIGKILL) -> None:
        """End or stop the primary, and lead its address to the replica, which takes its place."""
        assert self.replica is not None
        former = int(self.primary.info("server")["process_id"])
        os.kill(former, by)
        self.part_replica()
        self._lead_to(self._replica_place)
        if by is not signal.SIGKILL:
            self._servers.callback(os.kill, former, signal.SIGKILL)
        self._place, self.primary, self.replica = self._replica_place, self.replica, None

    def stop(self) -> None:
        """End the server, and lead its address nowhere."""
        os.kill(int(self.primary.info("server")["process_id"]), signal.SIGKILL)
        self._path.unlink()

    def copy(self) -> Path:
        """Return a copy of the files of the server, as of now."""
        return Path(shutil.copytree(self._place / STORED, self._folder / "copy"))

    def restore(self, copy: Path) -> None:
        """End the server, and lead its address to one with the files of a copy."""
        self.stop()
        shutil.copytree(copy, self._next() / STORED)
        self._place, self.primary = self._begin()
        self._lead_to(self._place)

    def _next(self) -> Path:
        """Return the folder of the next server, without starting it."""
        number = next(self._numbers)
        self._numbers = count(number)
        return self._folder / f"server-{number}"

    def _begin(self) -> tuple[Path, Redis]:
        place = self._folder / f"server-{next(self._numbers)}"
        return place, Redis.from_url(self._servers.enter_context(running_server(place)))

    def _lead_to(self, place: Path) -> None:
        link = self._path.with_suffix(".new")
        link.symlink_to(socket_path(place))
        os.replace(link, self._path)


def _find_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def replaced_server(folder: Path) -> Iterator[Address]:
    """Run a server in the folder, at an address that another one can take."""
    with ExitStack() as servers:
        yield Address(folder, servers)
