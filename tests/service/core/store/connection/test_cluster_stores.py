"""Stores in a cluster: a tenant finds its primary after a move and a fail-over; wrong URLs get a sentence."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from launch.checks import find_store_fault
from launch.stops import wait_until
from sayso.core.key_files import create_key_file
from sayso.errors import Unavailable
from service.core.settings import CHECKOUT
from service.core.settings.stores import name_tenant
from service.core.store.connection.connecting import (
    WeakDurability,
    await_store,
    check_durability,
    connect,
    connect_blocking,
    name_shared,
)
from service.core.store.connection.formats import CURRENT, check_format
from service.core.store.connection.macs import Macs
from service.core.store.connection.pipeline import Pipeline, Script
from service.core.store.connection.watch import Watch
from service.core.store.keys import CHANGES, FORMAT, KEYS, STORE, keys_of
from service.core.store.loss.commit_counts import CommitCounts
from service.core.store.loss.confirming import Confirmer
from tests.clusters import PATIENCE_S, ServerCluster, running_cluster
from tests.receivers import make_certificate
from tests.sentinels import unused_ports
from tests.waits import until

INCREMENT = Script("return redis.call('INCR', KEYS[1])")
COUNT = "sayso:{main}:count"
USERS = CHECKOUT / "distribution" / "store" / "users.acl"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerCluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster"), password="the-right-one") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def tls_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerCluster]:
    with running_cluster(tmp_path_factory.mktemp("tls"), password="the-right-one", tls=True) as cluster:
        yield cluster


def url_of(cluster: ServerCluster, tenant: str = "main") -> str:
    return name_tenant(cluster.url, tenant)


async def test_all_clients_find_the_primary_of_a_moved_slot(cluster: ServerCluster) -> None:
    url = url_of(cluster)
    async with connect(url) as redis, connect(url, blocking=True) as blocking:
        pipeline, watch = Pipeline(redis), Watch(blocking)
        listening = asyncio.create_task(watch.listen())
        assert [await pipeline.run(INCREMENT, [COUNT]), await redis.incr(COUNT)] == [1, 2]
        with watch.on("topic") as event:
            await asyncio.wait_for(event.wait(), 5)
            event.clear()
            cluster.move("main", to=cluster.others("main")[0])
            for refused in (pipeline.run(INCREMENT, [COUNT]), redis.incr(COUNT)):
                with pytest.raises(Unavailable, match="refuses this just now"):
                    await refused
            assert await pipeline.run(INCREMENT, [COUNT]) == 3
            assert await redis.incr(COUNT) == 4
            await redis.publish(name_shared(redis, CHANGES + "topic"), "")
            await asyncio.wait_for(event.wait(), 5)
        listening.cancel()
        pipeline.close()
    with connect_blocking(url) as client:
        assert client.get(COUNT) == b"4"


@pytest.mark.parametrize("kind", ["cluster", "tls_cluster"])
async def test_all_clients_find_the_replica_of_a_killed_primary(kind: str, request: pytest.FixtureRequest) -> None:
    cluster: ServerCluster = request.getfixturevalue(kind)
    url = url_of(cluster)
    async with connect(url) as redis:
        pipeline = Pipeline(redis)

        async def works() -> bool:
            with suppress(Unavailable):
                return bool(await pipeline.run(INCREMENT, [COUNT])) and bool(await redis.incr(COUNT))
            return False

        assert await works()
        old = cluster.find_primary("main")
        cluster.kill(old)
        await until(works)
        assert wait_until(lambda: cluster.find_primary("main") != old, PATIENCE_S)  # other nodes hear of it later
        pipeline.close()
    cluster.start(old)
    cluster.await_order(3)
    cluster.await_replicas()
    assert find_store_fault(url) is None


async def test_each_tenant_has_its_own_keys_in_its_slot(cluster: ServerCluster) -> None:
    for tenant in ("acme", "globex"):
        await check_format(url_of(cluster, tenant))
        async with connect(url_of(cluster, tenant)) as redis:
            assert await redis.get(f"sayso:{{{tenant}}}:format") == str(CURRENT).encode()
            assert name_shared(redis, FORMAT) == f"sayso:{{{tenant}}}:format"
            slots = {await redis.execute_command("CLUSTER KEYSLOT", name) for name in await redis.keys(f"*{tenant}*")}
            assert len(slots) == 1


async def test_shared_keys_have_the_same_macs_in_a_cluster(cluster: ServerCluster, tmp_path: Path) -> None:
    create_key_file(tmp_path / "keys")
    macs = Macs(tmp_path / "keys")
    async with connect(url_of(cluster), macs=macs) as redis:
        for name in (KEYS + "a", "sayso:sessions:b", "sayso:macs", "sayso:aap-keys:c"):
            assert macs.check(name_shared(redis, name), macs.add(name, "value")) == b"value"
        assert macs.add("sayso:{main}:s:a", "value") != macs.add("sayso:{other}:s:a", "value")


async def test_a_confirmation_fails_where_the_write_before_it_was_refused(cluster: ServerCluster) -> None:
    url, keys = url_of(cluster), keys_of("main")
    await check_format(url)
    async with connect(url) as redis:
        changes, waiting = Pipeline(redis), Pipeline(redis)
        confirmer = Confirmer(waiting, CommitCounts(redis, changes, keys))
        confirmer.replicas = 1
        await confirmer.confirm()
        cluster.move("main", to=cluster.others("main")[0])
        with pytest.raises(Unavailable, match="refuses this just now"):
            await confirmer.confirm()
        changes.close()
        waiting.close()


async def test_every_primary_is_checked_for_durability(cluster: ServerCluster) -> None:
    url, (other, _) = url_of(cluster), cluster.others("main")
    assert await check_durability(url, allow_weak=False) is None
    cluster.ask(other, "CONFIG SET", "appendfsync", "everysec")
    with pytest.raises(WeakDurability, match=f"redis://127.0.0.1:{other}: appendfsync is everysec, not always"):
        await check_durability(url, allow_weak=False)
    cluster.ask(other, "CONFIG SET", "appendfsync", "always")


async def test_an_authority_that_is_not_trusted_is_named(tls_cluster: ServerCluster, tmp_path: Path) -> None:
    assert tls_cluster.tls is not None
    assert await check_durability(url_of(tls_cluster), allow_weak=False) is None
    _, other = make_certificate(tmp_path)
    with pytest.raises(Unavailable, match=r"(?i)certificate.verify.failed"):
        await await_store(url_of(tls_cluster).replace(str(tls_cluster.tls.authority), str(other)), wait_s=0)


async def test_a_node_given_as_a_store_is_named_with_the_right_setting(cluster: ServerCluster) -> None:
    port = cluster.others("main")[0]
    with pytest.raises(Unavailable, match=r"is a node of a cluster\. Set SAYSO_REDIS_URL to redis\+cluster://"):
        await await_store(f"redis://:the-right-one@127.0.0.1:{port}/0", wait_s=3_600)


@pytest.mark.parametrize("role", ["service", "worker", "clock", "reader"])
async def test_each_user_of_the_example_file_finds_the_primary(cluster: ServerCluster, role: str) -> None:
    (rules,) = [line.split()[2:] for line in USERS.read_text().splitlines() if line.startswith(f"user sayso-{role} ")]
    for port in cluster.nodes:
        cluster.ask(port, "ACL SETUSER", f"sayso-{role}", *rules)
    url = url_of(cluster).replace(":the-right-one", f"sayso-{role}:CHANGE-ME-{role}")
    async with connect(url) as redis:
        await redis.get(name_shared(redis, FORMAT))
    assert find_store_fault(url) is None


async def test_each_node_is_named_with_what_it_says(clean_store_url: str) -> None:
    (port,) = unused_ports(1)
    with pytest.raises(Unavailable) as refused:
        await await_store(f"redis+cluster://127.0.0.1:{port}/main", wait_s=0)
    assert "node of a cluster, that answers names a primary that lives" in refused.value.message
    assert f"127.0.0.1:{port} does not answer" in refused.value.message


async def test_a_wrong_password_of_a_cluster_ends_the_wait(cluster: ServerCluster) -> None:
    with pytest.raises(Unavailable, match="refuses the user or the password"):
        await await_store(url_of(cluster).replace("the-right-one", "wrong"), wait_s=3_600)


async def test_a_store_that_belongs_to_another_tenant_is_not_seen(cluster: ServerCluster) -> None:
    await check_format(url_of(cluster, "acme"))
    async with connect(url_of(cluster, "hooli")) as redis:
        assert not await redis.exists(name_shared(redis, STORE))
