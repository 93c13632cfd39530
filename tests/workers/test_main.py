"""`python -m workers` and the clock as processes: start errors, and invalid rules at run time."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from launch.checks import is_worker_alive
from launch.server import running_server
from launch.stops import wait_until
from service.assembly import assemble
from service.core.jobs import count_workers, worker_pids
from service.core.settings import CHECKOUT, Settings
from tests.service.test_main import environ
from tests.waits import PATIENCE_S, until


@contextmanager
def started(module: str, url: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=CHECKOUT,
        env=environ(url, settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def test_wrong_setting_of_the_demo_is_one_sentence() -> None:
    with started("demo.model", "unix:///nowhere/store.sock?db=0", lease_s="soon") as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said.startswith("SAYSO_LEASE_S: ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("module", ["workers", "workers.clock"])
def test_unreadable_rules_are_one_line(module: str, clean_store_url: str, tmp_path: Path) -> None:
    with started(module, clean_store_url, policy=str(tmp_path / "absent.yaml")) as process:
        said, trouble = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the file cannot be read" in said.splitlines()[-1]
    assert trouble == ""


async def test_worker_keeps_the_last_good_rules(clean_store_url: str, tmp_path: Path) -> None:
    rules = tmp_path / "policy.yaml"
    rules.write_text("version: 1\ndefault: allow\nrules: []\n", encoding="utf-8")
    settings = {"policy": str(rules), "home": str(tmp_path), "drain_window_s": "1"}
    async with Redis.from_url(clean_store_url) as redis:
        with started("workers", clean_store_url, **settings):
            await until(lambda: jobs_done(redis))
            rules.write_text("version: 1\ndefault: alow\n", encoding="utf-8")
            before = await jobs_done(redis)
            await until(lambda: at_least(redis, before + 3))


async def test_worker_registers_again_after_the_store_was_emptied(clean_store_url: str, tmp_path: Path) -> None:
    settings = {"home": str(tmp_path), "drain_window_s": "1"}
    async with assemble(Settings(redis_url=clean_store_url)) as wiring, Redis.from_url(clean_store_url) as redis:

        async def is_known() -> bool:
            return bool(await redis.scard("rq:workers")) and bool(await wiring.runs.agents())

        with started("workers", clean_store_url, **settings):
            await until(is_known)
            await redis.flushall()
            await until(is_known)


async def jobs_done(redis: Redis) -> int:
    """How many drain jobs the one worker has brought to a good end."""
    found = [await redis.hget(key, "successful_job_count") async for key in redis.scan_iter("rq:worker:*")]
    return sum(int(one or 0) for one in found)


async def at_least(redis: Redis, number: int) -> bool:
    return await jobs_done(redis) >= number


def test_worker_survives_an_outage_of_the_store(tmp_path: Path) -> None:
    settings = {"home": str(tmp_path / "home"), "drain_window_s": "1"}
    with ExitStack() as at_exit:
        with running_server(tmp_path / "store") as url:
            process = at_exit.enter_context(started("workers", url, **settings))
            assert wait_until(lambda: worker_pids(url) == {process.pid}, PATIENCE_S)
        assert process.stdout is not None
        said = iter(process.stdout)
        away = next(line for line in said if "store_away" in line)
        assert f"The store at {url} does not answer" in away
        at_exit.enter_context(running_server(tmp_path / "store"))
        assert next(line for line in said if "store_back" in line)
        with BlockingRedis.from_url(url) as redis:
            redis.flushall()
        assert wait_until(lambda: worker_pids(url) == {process.pid}, PATIENCE_S)
        process.terminate()
        rest, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in rest + errors


REFUSALS = {
    "maxmemory": ({"maxmemory": "1"}, {"maxmemory": "0"}),
    "NOREPLICAS": ({"min-replicas-to-write": "1"}, {"min-replicas-to-write": "0"}),
    "read only": ({"replicaof": "127.0.0.1 1"}, {"replicaof": "no one"}),
}
"""What the store says, and the settings with which it refuses writes and takes them again."""


def is_working(redis: BlockingRedis) -> bool:
    """Return whether a worker has brought a drain job to a good end."""
    names: Any = redis.smembers("rq:workers")
    return any(int(redis.hget(name, "successful_job_count") or 0) for name in names)


def change(redis: BlockingRedis, settings: dict[str, str]) -> None:
    """Change the store while it runs."""
    for name, value in settings.items():
        if name == "replicaof":
            redis.replicaof(*value.split())
        else:
            redis.config_set(name, value)


@pytest.mark.parametrize("words", REFUSALS)
def test_worker_waits_while_the_store_refuses_writes(words: str, tmp_path: Path) -> None:
    refused, accepted = REFUSALS[words]
    settings = {"home": str(tmp_path / "home"), "drain_window_s": "1"}
    with ExitStack() as at_exit:
        url = at_exit.enter_context(running_server(tmp_path / "store"))
        redis = at_exit.enter_context(BlockingRedis.from_url(url))
        process = at_exit.enter_context(started("workers", url, **settings))
        assert wait_until(lambda: worker_pids(url) == {process.pid}, PATIENCE_S)
        assert process.stdout is not None
        said = iter(process.stdout)
        change(redis, refused)
        away = next(line for line in said if "store_away" in line)
        assert "refuses writes" in away
        assert words in away
        change(redis, accepted)
        assert wait_until(lambda: is_working(redis), PATIENCE_S)
        process.terminate()
        rest, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in rest + errors


def test_killed_worker_is_not_counted(tmp_path: Path) -> None:
    """RQ removes its name only when another worker lives."""
    settings = {"home": str(tmp_path / "home"), "drain_window_s": "1"}
    with ExitStack() as at_exit:
        url = at_exit.enter_context(running_server(tmp_path / "store"))
        redis = at_exit.enter_context(BlockingRedis.from_url(url))
        process = at_exit.enter_context(started("workers", url, **settings))
        assert wait_until(lambda: count_workers(url) == 1, PATIENCE_S)
        assert is_worker_alive(url)
        assert not is_worker_alive(url, host="another")
        process.kill()
        process.wait()
        names: Any = redis.smembers("rq:workers")
        for name in names:
            redis.expire(name, 35)  # as 45 seconds later
        assert redis.exists(*names) == 1
        assert (count_workers(url), worker_pids(url), is_worker_alive(url)) == (0, frozenset(), False)
