"""A server at one address that is replaced by a copy of its data: a replica, or files of an earlier time."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from redis import Redis

from launch.server import running_server
from launch.stops import wait_until
from service.core.settings import store_url_at

STORED = "appendonlydir"


class Address:
    """A socket's path that leads to the first server, and after `fail_over` to its replica."""

    def __init__(self, folder: Path, servers: ExitStack) -> None:
        self._folder, self._servers = folder, servers
        self._path = folder / "store.sock"
        self.url = store_url_at(self._path)
        self.primary = self._begin("first")
        self.replica: Redis | None = None
        self._lead_to("first")

    def add_replica(self) -> Redis:
        """Start a replica, and return it once it has everything that the first server has."""
        port = _find_port()
        self.primary.config_set("port", port)
        self.primary.config_set("repl-diskless-sync-delay", 0)
        self.replica = self._begin("second")
        self.replica.replicaof("127.0.0.1", port)
        self.await_replica()
        return self.replica

    def await_replica(self) -> None:
        """Wait until the replica has everything that the first server has."""
        replica = self.replica
        assert replica is not None
        assert wait_until(lambda: replica.info("replication").get("master_link_status") == "up", 20)
        assert self.primary.wait(1, 20_000) == 1

    def part_replica(self) -> None:
        """Let the replica get no further writes, as one that lags."""
        assert self.replica is not None
        self.replica.replicaof("NO", "ONE")

    def fail_over(self) -> None:
        """End the first server at once, and lead its address to the replica."""
        self.part_replica()
        self._lead_to("second")
        kill(self.primary)

    def copy(self) -> Path:
        """Return a copy of the files of the first server, as of now."""
        return Path(shutil.copytree(self._folder / "first" / STORED, self._folder / "copy"))

    def restore(self, copy: Path) -> None:
        """End the first server, and lead its address to one with the files of a copy."""
        kill(self.primary)
        shutil.copytree(copy, self._folder / "restored" / STORED)
        self.primary = self._begin("restored")
        self._lead_to("restored")

    def _begin(self, name: str) -> Redis:
        return Redis.from_url(self._servers.enter_context(running_server(self._folder / name)))

    def _lead_to(self, name: str) -> None:
        link = self._path.with_suffix(".new")
        link.symlink_to(self._folder / name / "store.sock")
        os.replace(link, self._path)


def kill(server: Redis) -> None:
    """End a server at once, without a chance to send anything."""
    os.kill(int(server.info("server")["process_id"]), 9)


def _find_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def replaced_server(folder: Path) -> Iterator[Address]:
    """Run a server in the folder, at an address that another one can take."""
    with ExitStack() as servers:
        yield Address(folder, servers)
