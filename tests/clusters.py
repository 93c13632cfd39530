"""A cluster of real servers, three primaries with a replica each, for tests of moved slots and fail-overs."""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis import Redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import RedisError

from launch.server import DURABILITY
from launch.stops import wait_until
from tests.sentinels import Tls, find_tls, run_server, unused_ports

PATIENCE_S = 20


@dataclass
class Node:
    """A server, its id in the cluster, and the port on which nodes talk to each other."""

    port: int
    bus: int
    id: str = ""
    process: "subprocess.Popen[bytes] | None" = None


@dataclass
class ServerCluster:
    """The nodes by port: first the primaries, then the replica of each."""

    folder: Path
    password: str = ""
    nodes: dict[int, Node] = field(default_factory=dict)
    options: Sequence[str] = ()
    tls: Tls | None = None

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.nodes)
        scheme, end = ("rediss", f"?ssl_ca_certs={self.tls.authority}") if self.tls else ("redis", "")
        return f"{scheme}+cluster://{f':{self.password}@' if self.password else ''}{hosts}{end}"

    def client(self, port: int) -> Redis:
        secure = self.tls.trust() if self.tls else {}
        return Redis(host="127.0.0.1", port=port, password=self.password or None, socket_timeout=5, **secure)

    def ask(self, port: int, *words: str | int | bytes) -> Any:
        with self.client(port) as client:
            return client.execute_command(*words)

    def find_primary(self, tenant: str) -> int:
        """Return the port of the primary of a tenant's slot, as a living node knows it."""
        slot = key_slot(f"{{{tenant}}}".encode())
        ranges = self.ask(self.living()[0], "CLUSTER SLOTS")
        return next(int(node[1]) for first, last, node, *_ in ranges if first <= slot <= last)

    def others(self, tenant: str) -> list[int]:
        """Return the ports of the primaries that do not have a tenant's slot."""
        ranges = self.ask(self.living()[0], "CLUSTER SLOTS")
        return sorted({int(node[1]) for _, _, node, *_ in ranges} - {self.find_primary(tenant)})

    def living(self) -> list[int]:
        return [node.port for node in self.nodes.values() if node.process and node.process.poll() is None]

    def kill(self, port: int) -> None:
        """Kill -9 a server."""
        process = self.nodes[port].process
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()

    def answers(self, port: int) -> bool:
        try:
            return bool(self.ask(port, "PING"))
        except RedisError:
            return False

    def knows(self, port: int, number: int) -> bool:
        """Return whether a node knows so many nodes."""
        return bool(self.ask(port, "CLUSTER INFO")["cluster_known_nodes"] == str(number))

    def start(self, port: int) -> None:
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        argv = ["--bind", "127.0.0.1", "--dir", str(folder), *DURABILITY]
        listen = {**self.tls.options(port), "tls-cluster": "yes"} if self.tls else {"port": port}
        argv += [part for name, value in listen.items() for part in (f"--{name}", str(value))]
        argv += ["--cluster-enabled", "yes", "--cluster-port", str(self.nodes[port].bus)]
        argv += ["--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"]
        if self.password:
            argv += ["--requirepass", self.password, "--masterauth", self.password]
        self.nodes[port].process = run_server(self.tls, folder / "server.log", *argv, *self.options)

    def await_order(self, primaries: int) -> None:
        """Wait until all living nodes see every slot served, by so many primaries."""

        def is_in_order(port: int) -> bool:
            try:
                ranges = self.ask(port, "CLUSTER SLOTS")
                state = self.ask(port, "CLUSTER INFO")["cluster_state"]
                return state == "ok" and len({node[1] for _, _, node, *_ in ranges}) == primaries
            except RedisError:
                return False

        assert wait_until(lambda: all(map(is_in_order, self.living())), PATIENCE_S)

    def await_replicas(self) -> None:
        """Wait until every replica follows its primary."""

        def follows(port: int) -> bool:
            role = self.ask(port, "ROLE")
            return bool(role[0] == b"master" or role[3] == b"connected")

        assert wait_until(lambda: all(map(follows, self.living())), PATIENCE_S)

    def move(self, tenant: str, to: int) -> None:
        """Move the slot of a tenant with all its keys to another primary, in one step of the servers."""
        slot = key_slot(f"{{{tenant}}}".encode())
        target = self.nodes[to].id
        self.ask(self.find_primary(tenant), "CLUSTER MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target)
        assert wait_until(lambda: self.find_primary(tenant) == to, PATIENCE_S)

    def move_by_key(self, tenant: str, to: int) -> None:
        """Move the slot of a tenant key by key, as servers without the other way do."""
        slot, source = key_slot(f"{{{tenant}}}".encode()), self.find_primary(tenant)
        self.ask(to, "CLUSTER SETSLOT", slot, "IMPORTING", self.nodes[source].id)
        self.ask(source, "CLUSTER SETSLOT", slot, "MIGRATING", self.nodes[to].id)
        login = ("AUTH", self.password) if self.password else ()
        while names := self.ask(source, "CLUSTER GETKEYSINSLOT", slot, 100):
            self.ask(source, "MIGRATE", "127.0.0.1", to, "", 0, 5_000, *login, "KEYS", *names)
        for port in (to, source):
            self.ask(port, "CLUSTER SETSLOT", slot, "NODE", self.nodes[to].id)
        assert wait_until(lambda: self.find_primary(tenant) == to, PATIENCE_S)


@contextmanager
def running_cluster(
    folder: Path,
    password: str = "",
    *,
    primaries: int = 3,
    replicas: int = 1,
    options: Sequence[str] = (),
    tls: bool = False,
) -> Iterator[ServerCluster]:
    """Run a cluster whose slots are spread evenly over its primaries."""
    number = primaries * (1 + replicas)
    ports = unused_ports(2 * number)
    nodes = {port: Node(port, bus) for port, bus in zip(ports[:number], ports[number:], strict=True)}
    cluster = ServerCluster(folder, password, nodes, options, find_tls(folder) if tls else None)
    try:
        for port in nodes:
            cluster.start(port)
        assert wait_until(lambda: all(map(cluster.answers, nodes)), PATIENCE_S)
        _join(cluster, primaries)
        yield cluster
    finally:
        for node in nodes.values():
            if node.process is not None:
                node.process.kill()
                node.process.wait()


def _join(cluster: ServerCluster, primaries: int) -> None:
    """Give each primary its share of the slots, introduce all nodes to each other, then let replicas follow."""
    nodes = list(cluster.nodes.values())
    share = REDIS_CLUSTER_HASH_SLOTS / primaries
    for number, node in enumerate(nodes):
        node.id = cluster.ask(node.port, "CLUSTER MYID").decode()
        cluster.ask(node.port, "CLUSTER SET-CONFIG-EPOCH", number + 1)
        cluster.ask(node.port, "CLUSTER MEET", "127.0.0.1", nodes[0].port, nodes[0].bus)
        if number < primaries:
            first, after = round(number * share), round((number + 1) * share)
            cluster.ask(node.port, "CLUSTER ADDSLOTSRANGE", first, after - 1)
    cluster.await_order(primaries)
    assert wait_until(lambda: all(cluster.knows(node.port, len(nodes)) for node in nodes), PATIENCE_S)
    for number, node in enumerate(nodes[primaries:]):
        cluster.ask(node.port, "CLUSTER REPLICATE", nodes[number % primaries].id)
    cluster.await_replicas()
    cluster.await_order(primaries)
