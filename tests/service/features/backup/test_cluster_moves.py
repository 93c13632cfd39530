"""A tenant moves into a cluster, out of it and back to where it was; the cluster's own keys of it stay."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file
from sayso.core.records.suspensions import Status
from sayso.errors import InvalidInput, Unavailable
from service.assembly import open_process
from service.core.auth.reviewers import hash_token
from service.core.settings import Settings
from service.core.settings.tenants import list_desks
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs, find_kind
from service.core.store.keys import KEYS, SESSIONS
from service.features.backup.moving import between
from tests.builders import approve, make_agent, make_pending, make_person
from tests.clusters import ServerCluster, running_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerCluster]:
    with running_cluster(tmp_path_factory.mktemp("servers"), "pa55word", replicas=0) as cluster:
        yield cluster


@pytest.fixture
async def desk(clean_store_url: str, cluster: ServerCluster, tmp_path: Path) -> Settings:
    """A tenant of a store with another one; records carry MACs. The cluster is empty."""
    for port in cluster.nodes:
        cluster.ask(port, "FLUSHALL")
    create_key_file(tmp_path / "keys")
    rows = {name: {"public_url": f"http://{name}"} for name in ("acme", "globex")}
    (tmp_path / "tenants.yaml").write_text(json.dumps({"tenants": rows}))
    settings = Settings(redis_url=clean_store_url, tenants=tmp_path / "tenants.yaml", key_file=tmp_path / "keys")
    await check_format(clean_store_url, Macs(settings.key_file))
    desks = list_desks(settings.model_copy(update={"home": tmp_path}))
    async with open_process(desks["globex"]) as process:
        await make_agent(process.wiring, "bot")
    return desks["acme"].model_copy(update={"queue_url": clean_store_url})


async def move(desk: Settings, url: str) -> tuple[str, Settings]:
    """Move; return all lines, and the settings after the line of the file was changed."""
    async with between(desk, url) as pair:
        lines = "\n".join([line async for line in pair.run()])
    return lines, desk.model_copy(update={"redis_url": url})


async def asks(desk: Settings) -> bool:
    async with open_process(desk) as process:
        await process.wiring.store.counts.compare()
        try:
            await make_pending(process.wiring)
        except Unavailable:
            return False
        return True


def names_in(cluster: ServerCluster) -> set[str]:
    return {name.decode() for name in cluster.ask(cluster.find_primary("acme"), "KEYS", "*")}


async def test_tenant_moves_into_a_cluster_and_out_of_it(desk: Settings, cluster: ServerCluster) -> None:
    async with open_process(desk) as process:
        agent, session = await make_agent(process.wiring, "bot"), await make_person(process.wiring, "anna", "admin")
        pending = await make_pending(process.wiring)
    lines, there = await move(desk, cluster.url)
    assert f"acme: redis_url: {cluster.url.replace(':pa55word@', '')}\n" in lines, "without the tenant and a password"
    assert "1 suspensions can be read" in lines
    own = {f"sayso:{{acme}}:{name.removeprefix('sayso:')}" for name in (KEYS, SESSIONS)}
    assert {name for name in names_in(cluster) if name.startswith(tuple(own))} == {
        f"sayso:{{acme}}:keys:{hash_token(agent)}",
        f"sayso:{{acme}}:sessions:{hash_token(session)}",
    }
    assert (await asks(desk), await asks(there)) == (False, True)

    lines, back = await move(there, desk.store_url)
    assert "2 suspensions can be read" in lines
    assert (await asks(there), await asks(back)) == (False, True)
    async with open_process(back) as process:
        record = (await process.wiring.desk.suspensions.read(pending.id)).record
        assert (await approve(process.wiring, record)).status is Status.DECIDED
        assert [key.name for key in await process.wiring.api_keys.list_all()] == ["bot"]
        assert await process.wiring.store.redis.exists(SESSIONS + hash_token(session))
        assert not [name async for name in process.wiring.store.redis.scan_iter("sayso:{acme}:keys:*")]
    async with between(back, cluster.url) as pair:
        assert "but a mark that it has moved" in await pair.erase()
    assert {find_kind(name) for name in names_in(cluster)} <= {"format", "store", "macs", "moving"}


async def test_way_back_from_a_cluster_makes_the_old_copy_live(desk: Settings, cluster: ServerCluster) -> None:
    for number in (1, 2):
        assert await asks(desk)
        lines, _ = await move(desk, cluster.url)
        assert f"{number} suspensions can be read" in lines
        async with between(desk, cluster.url) as pair:
            assert "nothing of it is left" in await pair.go_back()
    assert await asks(desk)


async def test_move_into_a_cluster_needs_a_store_for_the_queue(desk: Settings, cluster: ServerCluster) -> None:
    with pytest.raises(InvalidInput, match="Set SAYSO_QUEUE_URL, restart all programs"):
        await move(desk.model_copy(update={"queue_url": None}), cluster.url)
    with pytest.raises(InvalidInput, match="is the store in which acme is"):
        await move(desk.model_copy(update={"redis_url": cluster.url}), cluster.url)
