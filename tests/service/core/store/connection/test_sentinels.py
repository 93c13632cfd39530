"""Stores behind sentinels: the primary is found again after a fail-over, and wrong URLs get a sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis as BlockingRedis
from redis.exceptions import ResponseError

from launch.checks import find_store_fault
from launch.server import running_server
from sayso.errors import Unavailable
from service.core.jobs import DrainQueue
from service.core.store.connection.connecting import await_store, connect, connect_blocking, is_refusal
from service.core.store.connection.pipeline import Pipeline, Script
from tests.receivers import make_certificate
from tests.sentinels import NAME, Group, running_group, unused_ports
from tests.waits import until

INCREMENT = Script("return redis.call('INCR', KEYS[1])")


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "tls"])
def group(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    with running_group(tmp_path_factory.mktemp("group"), password="the-right-one", tls=request.param) as group:
        yield group


async def test_all_clients_find_the_new_primary_after_a_fail_over(group: Group) -> None:
    queue = DrainQueue(group.url, 60)
    async with connect(group.url) as redis:
        pipeline = Pipeline(redis)

        async def works() -> bool:
            try:
                return bool(await pipeline.run(INCREMENT, ["count"])) and bool(await redis.incr("other"))
            except Unavailable:
                return False

        await await_store(group.url, wait_s=0)
        assert await works()
        queue.put_back()
        old = group.kill_primary()
        await until(works)
        queue.put_back()
        new = group.await_primary(other_than=old)
        with connect_blocking(group.url) as blocking:
            name = "tls-port" if group.tls else "port"
            assert blocking.config_get(name) == {name: str(new)}
        pipeline.close()
    queue.close()
    group.start(old)
    group.await_replicas()
    assert find_store_fault(group.url) is None


@pytest.mark.parametrize("database", [0, 1])
async def test_a_sentinel_given_as_a_store_is_named_with_the_right_url(group: Group, database: int) -> None:
    port = group.sentinels[0]
    right = f"Set SAYSO_REDIS_URL to {group.scheme}\\+sentinel://127.0.0.1:{port}/{NAME} with all sentinels"
    for login in ("", ":the-right-one@"):
        with pytest.raises(Unavailable, match=right):
            await await_store(f"{group.scheme}://{login}127.0.0.1:{port}/{database}{group.end}", wait_s=3_600)


async def test_each_sentinel_is_named_with_what_it_knows(group: Group) -> None:
    (port,) = unused_ports(1)
    known = group.sentinels[0]
    with pytest.raises(Unavailable) as refused:
        await await_store(f"{group.scheme}+sentinel://127.0.0.1:{port},127.0.0.1:{known}/dask{group.end}", wait_s=0)
    assert "that answers names a primary that lives" in refused.value.message
    assert f"127.0.0.1:{known} knows '{NAME}', not 'dask'" in refused.value.message
    assert f"127.0.0.1:{port} does not answer" in refused.value.message


async def test_a_wrong_password_behind_sentinels_ends_the_wait(group: Group) -> None:
    with pytest.raises(Unavailable, match="refuses the user or the password"):
        await await_store(group.url.replace("the-right-one", "wrong"), wait_s=3_600)


async def test_sentinels_with_a_certificate_of_an_unknown_authority_are_refused(group: Group, tmp_path: Path) -> None:
    if group.tls is None:
        with pytest.raises(Unavailable, match="that answers names a primary"):
            await await_store(group.url.replace("redis+", "rediss+"), wait_s=0)
        return
    _, other = make_certificate(tmp_path)
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
        await await_store(group.url.replace(str(group.tls.authority), str(other)), wait_s=0)


async def test_connections_to_a_demoted_primary_are_dropped(tmp_path: Path) -> None:
    with running_server(tmp_path) as url, BlockingRedis.from_url(url) as operator:
        async with connect(url) as redis:
            pipeline, queue = Pipeline(redis), DrainQueue(url, 60)
            await pipeline.run(INCREMENT, ["count"])
            before = {await redis.client_id(), await pipeline.ask("CLIENT", "ID")}
            queue.put_back()
            operator.replicaof("127.0.0.1", "1")
            with pytest.raises(Unavailable, match="refuses this just now"):
                await pipeline.run(INCREMENT, ["count"])
            with pytest.raises(Unavailable, match="refuses this just now"):
                await redis.incr("count")
            with pytest.raises(ResponseError):
                queue.put()
            operator.replicaof("no", "one")
            after = {await redis.client_id(), await pipeline.ask("CLIENT", "ID")}
            assert not before & after
            assert await pipeline.run(INCREMENT, ["count"]) == 2
            queue.put()
            pipeline.close()
            queue.close()


@pytest.mark.parametrize(
    "words",
    [
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Errors writing to the AOF file: No space left on device",
        "LOADING Redis is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "NOREPLICAS Not enough good replicas to write.",
        "MASTERDOWN Link with MASTER is down",
        "CLUSTERDOWN The cluster is down",
        "MOVED 12501 127.0.0.1:6380",
        "ASK 12501 127.0.0.1:6380",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    ],
)
def test_every_refusal_that_passes_is_known(words: str) -> None:
    assert is_refusal(ResponseError(words))
    assert is_refusal(ResponseError(f"Command # 1 (SET a b) of pipeline caused error: {words}"))
