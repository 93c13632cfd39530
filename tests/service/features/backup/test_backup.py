"""A backup is the store at one instant, and opens with its key alone; a restore voids what may have run since."""

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from sayso.core.key_files import create_key_file, read_key_file
from sayso.core.policy.external import ExternalCall
from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import ResumeSpec, Status
from sayso.core.records.tools import ToolCall
from sayso.errors import AlreadyRedeemed, InvalidInput, NotFound
from service.assembly import open_process
from service.core.settings import CHECKOUT, Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from service.core.store.keys import FORMAT, TenantKeys
from service.core.wiring import Wiring
from service.features.backup.files import read_backup, write_backup
from service.features.backup.store import read_store
from tests.builders import REFUND, approve, finish, make_pending, make_person, make_running, run_ref
from tests.builders import ask as ask_for
from tests.clusters import running_cluster
from tests.sentinels import running_group
from tests.service.core.store.flipping import flip

KEYS = TenantKeys(TENANT)


@pytest.fixture
def store(clean_store_url: str) -> Iterator[Any]:
    with Redis.from_url(clean_store_url) as client:
        yield client


@contextmanager
def writing(url: str) -> Iterator[None]:
    """Write to many keys at once, over and over, also new ones and removed ones."""
    stop = threading.Event()

    def write(first: int) -> None:
        with Redis.from_url(url) as client:
            number = first
            while not stop.is_set():
                number += 2
                with client.pipeline(transaction=True) as pipe:
                    for name in range(50):
                        pipe.set(f"sayso:{{{TENANT}}}:s:{name}", number)
                    pipe.set(f"sayso:{{{TENANT}}}:r:{number}", number)
                    pipe.delete(f"sayso:{{{TENANT}}}:r:{number - 200}")
                    pipe.zadd(KEYS.schedule, {"last": number})
                    pipe.execute()

    writers = [threading.Thread(target=write, args=(first,)) for first in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_backup_of_a_changing_store_is_one_instant(clean_store_url: str, store: Any) -> None:
    for _ in range(5):
        store.flushall()
        store.mset({f"sayso:{{{TENANT}}}:e:{name}": "x" for name in range(5_000)})
        with writing(clean_store_url):
            kept = {entry.name: entry for entry in read_store(clean_store_url)}
        store.flushall()
        for entry in kept.values():
            if entry.dump is not None:
                store.restore(entry.name, 0, entry.dump)
        assert store.exists(*[f"sayso:{{{TENANT}}}:e:{name}" for name in range(5_000)]) == 5_000
        (number,) = {int(store.get(f"sayso:{{{TENANT}}}:s:{name}")) for name in range(50)}
        assert store.zscore(KEYS.schedule, "last") == number
        assert store.exists(f"sayso:{{{TENANT}}}:r:{number}")
        assert not store.exists(f"sayso:{{{TENANT}}}:r:{number + 2}")


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_backup_finds_the_primary_through_sentinels(tmp_path: Path, tls: bool) -> None:
    with running_group(tmp_path, password="the-right-one", tls=tls) as group:
        with group.client(group.find_primary()) as client:
            client.set(KEYS.suspension("a"), "x")
        assert [entry.name.decode() for entry in read_store(group.url)] == [KEYS.suspension("a")]


def make_environ(**environ: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
    return {**kept, "SAYSO_ALLOW_WEAK_DURABILITY": "true", **environ}


def run(act: str, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command, env = [sys.executable, "-m", "service.features.backup", act, *args], make_environ(**environ)
    return subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("keyed", [True, False])
async def test_restored_desk_starts_nothing_twice(
    clean_store_url: str, store: Any, tmp_path: Path, keyed: bool
) -> None:
    environ = {"SAYSO_REDIS_URL": clean_store_url}
    if keyed:
        create_key_file(tmp_path / "keys")
        environ["SAYSO_KEY_FILE"] = str(tmp_path / "keys")
    settings = Settings(redis_url=clean_store_url, key_file=tmp_path / "keys" if keyed else None)
    await check_format(clean_store_url, Macs(settings.key_file))
    call = ExternalCall(ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": 5}), REFUND)
    async with open_process(settings) as process:
        wiring = process.wiring
        await make_person(wiring, "anna")
        pending, ended = (
            await make_pending(wiring),
            await finish(wiring, await approve(wiring, await make_pending(wiring))),
        )
        approved, begun = await approve(wiring, await make_pending(wiring)), await make_running(wiring)
        polled = (await wiring.desk.suspend(run_ref(), [call], ResumeSpec(mode="poll"))).record
        polled = await approve(wiring, polled)
    file = tmp_path / "backup"
    done = run("save", str(file), **environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert ("encrypted with the key" in done.stdout) == keyed
    assert (b"ORDER" in file.read_bytes(), file.stat().st_mode & 0o777) == (False, 0o600)
    assert "exists already" in run("save", str(file), **environ).stderr
    refused = run("restore", str(file), **environ)
    assert (refused.returncode, "The store is not empty" in refused.stderr) == (1, True)
    store.flushall()
    done = run("restore", str(file), "--verify", **environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "5 suspensions can be read, and the trails of 5 runs are whole" in done.stdout
    assert store.get(FORMAT) == b"2"
    async with open_process(settings) as process:
        await check_restored(process.wiring, [record.id for record in (pending, ended, approved, begun, polled)])


async def check_restored(wiring: Wiring, ids: list[str]) -> None:
    pending, ended, approved, begun, polled = [(await wiring.desk.suspensions.read(id_)).record for id_ in ids]
    (freeze,) = await wiring.freezes.in_force()
    assert (freeze.scope, freeze.by) == ("all", "restore")
    assert "may have run" in str(pending.items[0].prompt.reason)
    assert ended.status is Status.RESUMED
    assert begun.status is Status.FAILED
    assert "restored from a backup" in str(begun.end and begun.end.error)
    (intent,) = approved.journal
    assert (approved.status, intent.holder, intent.item_id) == (Status.RESUMING, "restore", "i1")
    assert polled.following_id is not None
    asked = (await wiring.desk.suspensions.read(polled.following_id)).record
    assert asked.items[0].doubt is not None
    with pytest.raises(AlreadyRedeemed, match="may have run"):
        await wiring.desk.client_redeem(polled.id, "i1", "another", Revocations())
    with pytest.raises(NotFound):
        await wiring.desk.suspensions.read("sus_none")
    assert await wiring.store.redis.llen(wiring.store.keys.ready) == 0


async def test_damaged_file_restores_nothing(clean_store_url: str, store: Any, tmp_path: Path) -> None:
    await check_format(clean_store_url)
    async with open_process(Settings(redis_url=clean_store_url)) as process:
        await make_pending(process.wiring, ask_for(order="x" * 3_000))
    create_key_file(tmp_path / "keys")
    (key,) = read_key_file(tmp_path / "keys")
    for name, used in (("sealed", key), ("clear", None)):
        path = tmp_path / name
        write_backup(path, "2", 1, used, read_store(clean_store_url))
        whole = path.read_bytes()
        for at in range(15, len(whole), 7):
            path.write_bytes(flip(whole, at))
            with pytest.raises(InvalidInput):
                list(read_backup(path, {key.id: key}.get))
        for cut in (whole[:-1], whole[: len(whole) // 2], whole + b"0", whole[:100]):
            path.write_bytes(cut)
            with pytest.raises(InvalidInput):
                list(read_backup(path, {key.id: key}.get))
    write_backup(tmp_path / "other", "2", 1, key, read_store(clean_store_url))
    with pytest.raises(InvalidInput, match="encrypted with the key"):
        list(read_backup(tmp_path / "other", lambda _: None))


def test_backup_is_private_beside_a_part_that_others_can_read(clean_store_url: str, tmp_path: Path) -> None:
    part = tmp_path / "backup.part"
    part.write_bytes(b"of a backup that was cut off")
    part.chmod(0o644)
    write_backup(tmp_path / "backup", "2", 1, None, read_store(clean_store_url))
    assert ((tmp_path / "backup").stat().st_mode & 0o777, part.exists()) == (0o600, False)
    assert list(read_backup(tmp_path / "backup", lambda _: None)) == []


def test_backups_in_a_folder_are_named_by_their_time_and_the_oldest_deleted(
    clean_store_url: str, store: Any, tmp_path: Path
) -> None:
    store.set(FORMAT, "2")
    kept = ["2026-11-28.sayso", "2020-01-01T00-00-00Z.txt"]
    for name in (*kept, "2020-01-01T00-00-00Z.sayso", "2020-01-02T00-00-00Z.sayso"):
        (tmp_path / name).touch()
    done = run("save", str(tmp_path), "--keep", "2", SAYSO_REDIS_URL=clean_store_url)
    assert done.returncode == 0, done.stderr
    old, new = sorted(path.name for path in tmp_path.iterdir() if path.name not in kept)
    assert old == "2020-01-02T00-00-00Z.sayso"
    assert new > "2026"
    assert list(read_backup(tmp_path / new, lambda _: None))
    done = run("save", str(tmp_path / "file"), "--keep", "2", SAYSO_REDIS_URL=clean_store_url)
    assert (done.returncode, "needs a number from 1 on, and a folder" in done.stderr) == (1, True)


def test_backup_without_enough_space_says_so(clean_store_url: str, store: Any, tmp_path: Path) -> None:
    """A limit of the size of files stands for a full disk; Python ignores the signal that comes with its error."""
    store.set(KEYS.suspension("a"), os.urandom(200_000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InvalidInput, match="with enough space"):
            write_backup(tmp_path / "backup", "2", 1, None, read_store(clean_store_url))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


async def test_a_store_of_several_tenants_moves_into_a_cluster_and_back(
    clean_store_url: str, store: Any, tmp_path: Path
) -> None:
    create_key_file(tmp_path / "keys")
    common = {"SAYSO_KEY_FILE": str(tmp_path / "keys"), "SAYSO_QUEUE_URL": clean_store_url}
    settings = Settings(redis_url=clean_store_url, key_file=tmp_path / "keys", home=tmp_path)
    await check_format(clean_store_url, Macs(settings.key_file))
    for tenant in ("acme", TENANT):
        async with open_process(settings.model_copy(update={"tenant": tenant})) as process:
            await make_pending(process.wiring)
            await process.wiring.api_keys.create(tenant)
    (tmp_path / "rows.yaml").write_text("tenants: {acme: {public_url: http://a}, default: {public_url: http://d}}")
    tenants = {"SAYSO_TENANTS": str(tmp_path / "rows.yaml")}
    assert run("save", str(tmp_path / "one"), SAYSO_REDIS_URL=clean_store_url, **common, **tenants).returncode == 0
    (tmp_path / "servers").mkdir()
    with running_cluster(tmp_path / "servers", replicas=0) as cluster:
        environ = {"SAYSO_REDIS_URL": cluster.url, **common, **tenants}
        done = run("restore", str(tmp_path / "one"), "--verify", "--tenant", TENANT, **environ)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        moved = settings.model_copy(update={"redis_url": cluster.url, "queue_url": clean_store_url})
        async with open_process(moved) as process:
            assert [key.name for key in await process.wiring.api_keys.list_all()] == [TENANT]
        names = cluster.ask(cluster.find_primary(TENANT), "KEYS", "*:keys:*")
        assert [name.startswith(b"sayso:{default}:") for name in names] == [True]
        assert "is not empty" in run("restore", str(tmp_path / "one"), "--tenant", TENANT, **environ).stderr
        assert run("save", str(tmp_path / "two"), "--tenant", TENANT, **environ).returncode == 0
    store.flushall()
    done = run("restore", str(tmp_path / "two"), "--verify", SAYSO_REDIS_URL=clean_store_url, **common)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    async with open_process(settings) as process:
        assert [key.name for key in await process.wiring.api_keys.list_all()] == [TENANT]
