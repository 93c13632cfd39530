"""Each process has a user of its own in the store, as the example file has it, and tools see none of the passwords."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from demo.journeys import connected
from demo.stacks import Stack, find_ports
from launch.checks import is_healthy
from launch.stops import wait_until
from sayso.core.key_files import create_key_file
from sayso.core.records.suspensions import RunStatus
from sayso.errors import Unavailable
from service.core.jobs import count_workers
from service.core.settings import CHECKOUT
from service.core.store.connection.connecting import connect
from service.features.backup.files import Entry
from service.features.backup.store import load
from tests.journeys.dumping_agents import SEEN
from tests.journeys.stacks import PATIENCE_S, await_pause
from tests.journeys.waiting_agents import LET_GO
from tests.sentinels import Group, answers, unused_ports
from tests.service.test_main import environ, service
from tests.workers.test_main import started

USERS = CHECKOUT / "distribution" / "store" / "users.acl"
OPERATOR = "user operator on >operator ~* &* +@all\n"
AGENTS = "demo.agents:support,tests.journeys.waiting_agents:again,tests.journeys.dumping_agents:dumping"
RULES = """version: 1
default: request_approval
rules:
  - {id: dump, tool: dump, action: allow}
"""
FORBIDDEN = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("CONFIG", "SET", "maxmemory", "1"),
    ("SHUTDOWN", "NOSAVE"),
    ("KEYS", "*"),
    ("ACL", "LIST"),
    ("REPLICAOF", "NO", "ONE"),
    ("SCRIPT", "FLUSH"),
    ("FUNCTION", "FLUSH"),
    ("SET", "elsewhere", "1"),
)
URLS = {
    "archive": "s3+https://key:the-password-of-the-archive@127.0.0.1/desk",
    "checkpoints": "s3+https://key:the-password-of-the-sink@127.0.0.1/desk",
    "egress_proxy": "http://out:the-password-of-the-proxy@127.0.0.1:9",
}
ROLES = ("service", "worker", "clock", "reader")


class GuardedStore:
    """A server with the users of the example file, and one who may do all."""

    def __init__(self, port: int) -> None:
        self._port = port

    def url(self, role: str) -> str:
        return f"redis://sayso-{role}:CHANGE-ME-{role}@127.0.0.1:{self._port}/0"

    def client(self, role: str) -> Redis:
        return Redis.from_url(self.url(role))

    def refused(self) -> list[str]:
        """Return what was refused to which user since the start."""
        with Redis(port=self._port, username="operator", password="operator") as operator:
            return [f"{entry['username']}: {entry['object']}" for entry in operator.acl_log()]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GuardedStore]:
    (port,) = unused_ports(1)
    users = tmp_path / "users.acl"
    users.write_text(USERS.read_text() + OPERATOR)
    server = Group(tmp_path, [])
    server.start(port, "--aclfile", str(users))
    try:
        assert wait_until(lambda: answers(port), PATIENCE_S)
        yield GuardedStore(port)
    finally:
        server.servers[port].kill()
        server.servers[port].wait()


@pytest.mark.parametrize("role", ROLES)
def test_commands_that_no_process_needs_are_refused(store: GuardedStore, role: str) -> None:
    with store.client(role) as client:
        for command in FORBIDDEN:
            with pytest.raises(NoPermissionError):
                client.execute_command(*command)
        assert client.get("sayso:format") is None
        if role == "reader":
            with pytest.raises(NoPermissionError):
                client.set("sayso:format", "1")
        if role in ("service", "reader"):
            with pytest.raises(NoPermissionError):
                client.sadd("rq:workers", "forged")


async def test_restore_by_a_user_without_the_right_is_refused(store: GuardedStore) -> None:
    async with connect(store.url("restore")) as redis:
        await redis.set("sayso:kept", "1")
        kept = Entry(b"sayso:kept", -1, await redis.dump("sayso:kept"))
        await load(redis, [kept])
    async with connect(store.url("service")) as redis:
        with pytest.raises(Unavailable, match="refuses RESTORE"):
            await load(redis, [kept])


@contextmanager
def running(store: GuardedStore, home: Path) -> Iterator[Stack]:
    """Run the set-up, then the service, a worker and a clock, each with its own user."""
    policy, keys = home / "policy.yaml", home / "keys"
    policy.write_text(RULES)
    create_key_file(keys)
    settings = {"home": str(home), "policy": str(policy), "agents": AGENTS, "key_file": str(keys), "lease_s": "2"}
    secrets = {"admin_password": "the admin's password", "key": "the-key-of-the-agent"}
    port = find_ports()
    subprocess.run(
        [sys.executable, "-m", "service.setup"],
        cwd=CHECKOUT,
        env=environ(store.url("service"), settings | secrets),
        check=True,
    )
    with ExitStack() as programs:
        child = programs.enter_context(service(store.url("service"), port=str(port), **settings))
        programs.enter_context(started("workers", store.url("worker"), **settings, **secrets, **URLS))
        programs.enter_context(started("workers.clock", store.url("clock"), **settings))
        assert wait_until(lambda: is_healthy("127.0.0.1", port), PATIENCE_S)
        assert wait_until(lambda: count_workers(store.url("service")) == 1, PATIENCE_S)
        yield Stack(home, port, secrets["admin_password"], secrets["key"], child)  # type: ignore[arg-type]


async def test_each_process_works_with_its_own_user(store: GuardedStore, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with running(store, home) as stack:
        async with connected(stack) as (client, reviewer):
            await client.await_agent("dumping")
            dumped = await client.start_run("dumping", "Dump.", "What a tool sees", key="dump")
            run = await client.start_run("again", "Wait.", "A run", key="start")
            paused = await await_pause(client, run.id)
            (item,) = (await reviewer.find_suspension(paused.suspension_id)).items
            await reviewer.decide(paused.suspension_id, item, {"action": "approve"}, key="yes")
            (home / LET_GO).touch()
            assert [(await client.await_end(one)).status for one in (run.id, dumped.id)] == [RunStatus.COMPLETED] * 2
        assert store.refused() == []
        seen = (home / SEEN).read_text(errors="surrogateescape")
    assert "SAYSO_HOME" in seen
    for secret in (
        "CHANGE-ME",
        "REDIS_URL=redis",
        "KEY_FILE=/",
        "the admin's password",
        "the-key-of-the-agent",
        "the-password",
    ):
        assert secret not in seen
