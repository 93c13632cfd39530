"""A primary, its replica and three sentinels, as real servers, for tests of fail-overs."""

import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from launch.server import DURABILITY, find_binary
from launch.stops import wait_until

NAME = "desk"
PATIENCE_S = 30
_SENTINEL = """\
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {name} 127.0.0.1 {primary} 2
sentinel down-after-milliseconds {name} 1000
sentinel failover-timeout {name} 5000
"""


def unused_ports(number: int) -> list[int]:
    """Return ports on which nothing listens."""
    with ExitStack() as probes:
        sockets = [probes.enter_context(closing(socket.socket())) for _ in range(number)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in sockets]


@dataclass
class Group:
    """Servers of one store by port, and the ports of its sentinels."""

    folder: Path
    sentinels: Sequence[int]
    password: str = ""
    servers: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        login = f":{self.password}@" if self.password else ""
        return f"redis+sentinel://{login}{hosts}/{NAME}/0"

    def client(self, port: int) -> Redis:
        return Redis(port=port, password=self.password or None, socket_timeout=2)

    def find_primary(self) -> int:
        """Return the port of the server that the first sentinel names."""
        with Redis(port=self.sentinels[0]) as sentinel:
            _, port = sentinel.sentinel_get_master_addr_by_name(NAME)
        return int(port)

    def replicas(self) -> list[int]:
        primary = self.find_primary()
        return [port for port in self.servers if port != primary]

    def start(self, port: int, *options: str) -> None:
        """Start a server, with the files it had before."""
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        argv = [str(find_binary()), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *DURABILITY]
        if self.password:
            argv += ["--requirepass", self.password, "--primaryauth", self.password]
        with (folder / "server.log").open("ab") as log:
            self.servers[port] = subprocess.Popen([*argv, *options], stdout=log, stderr=log)

    def kill_primary(self) -> int:
        """Kill -9 the primary; return its port."""
        port = self.find_primary()
        self.servers[port].send_signal(signal.SIGKILL)
        self.servers[port].wait()
        return port

    def await_primary(self, other_than: int = 0) -> int:
        """Wait until another server is the primary and takes writes; return its port."""
        assert wait_until(lambda: self.find_primary() != other_than and self._accepts(self.find_primary()), PATIENCE_S)
        return self.find_primary()

    def await_replicas(self) -> None:
        """Wait until every replica has what the primary has, and the sentinels know all servers and each other."""

        def are_in_step() -> bool:
            with Redis(port=self.sentinels[0]) as sentinel:
                state: Any = sentinel.sentinel_masters()[NAME]
            known = (state["num-other-sentinels"], state["num-slaves"])
            return known == (len(self.sentinels) - 1, len(self.servers) - 1) and all(
                map(self._follows, self.replicas())
            )

        assert wait_until(are_in_step, PATIENCE_S)

    def _accepts(self, port: int) -> bool:
        return self._ask(port)[:1] == [b"master"]

    def _follows(self, port: int) -> bool:
        return self._ask(port)[3:4] == [b"connected"]

    def _ask(self, port: int) -> list[Any]:
        try:
            with self.client(port) as client:
                return list(client.execute_command("ROLE"))
        except RedisError:
            return []


@contextmanager
def running_group(folder: Path, password: str = "") -> Iterator[Group]:
    """Run a primary, a replica that has all of it, and three sentinels that agree on both."""
    primary, replica, *sentinels = unused_ports(5)
    group, watchers = Group(folder, sentinels, password), []
    try:
        group.start(primary)
        group.start(replica, "--replicaof", f"127.0.0.1 {primary}")
        for port in sentinels:
            config = folder / f"sentinel-{port}.conf"
            text = _SENTINEL.format(port=port, folder=folder, name=NAME, primary=primary)
            config.write_text(text + (f"sentinel auth-pass {NAME} {password}\n" if password else ""))
            with (folder / f"sentinel-{port}.log").open("wb") as log:
                argv = [str(find_binary()), str(config), "--sentinel"]
                watchers.append(subprocess.Popen(argv, stdout=log, stderr=log))
        assert wait_until(lambda: all(map(answers, (primary, replica, *sentinels))), PATIENCE_S)
        group.await_replicas()
        yield group
    finally:
        for process in (*watchers, *group.servers.values()):
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    """Return whether a server listens on the port."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
