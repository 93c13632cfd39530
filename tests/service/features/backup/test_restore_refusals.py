"""A restore that cannot be whole says what is wrong, and leaves a store that no program uses, or an empty one."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from launch.server import running_server
from launch.stops import wait_until
from sayso.core.key_files import SecretKey, create_key_file, read_key_file
from sayso.core.packages import VERSION
from sayso.errors import InvalidInput
from service.assembly import open_process
from service.core.settings import CHECKOUT, Settings
from service.core.settings.limits import TENANT
from service.core.settings.tenants import list_desks
from service.core.store.connection.formats import OtherFormat, check_format
from service.core.store.connection.macs import Macs
from service.core.store.keys import FORMAT, TenantKeys
from service.core.store.suspensions.reading import unpack_body
from service.features.backup.files import write_backup
from service.features.backup.restoring import restore
from service.features.backup.store import NotVerified, read_store
from tests.builders import make_pending, make_person
from tests.service.core.store.flipping import flip
from tests.service.features.backup.test_backup import make_environ, run

KEYS = TenantKeys(TENANT)
MANY = 20_000


@pytest.fixture
def store(clean_store_url: str) -> Iterator[Any]:
    with Redis.from_url(clean_store_url) as client:
        yield client


@pytest.fixture(scope="module")
def other_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("other")) as url:
        yield url


async def fill(settings: Settings) -> str:
    """Set up a desk with a person and an open item; return the id of its suspension."""
    await check_format(settings.store_url, Macs(settings.key_file))
    async with open_process(settings) as process:
        await make_person(process.wiring, "anna")
        return (await make_pending(process.wiring)).id


async def read(settings: Settings, suspension_id: str) -> str:
    """Return why a restored item is asked, as far as it is known."""
    await check_format(settings.store_url, Macs(settings.key_file))
    async with open_process(settings) as process:
        return str((await process.wiring.desk.suspensions.read(suspension_id)).record.items[0].prompt.reason)


def save(settings: Settings, file: Path, key: SecretKey | None = None, format_: str = "2") -> None:
    """Back the store up, and empty it."""
    write_backup(file, format_, 1, key, read_store(settings.store_url))
    with Redis.from_url(settings.store_url) as client:
        client.flushall()


async def bring_back(file: Path, *desks: Settings, key: SecretKey | None = None) -> str:
    """Restore a backup; return what is printed."""
    keys = {key.id: key} if key is not None else {}
    named = {desk.tenant: desk for desk in desks}
    return "\n".join([line async for line in restore(file, keys, desks[0].store_url, named, verify=True)])


async def test_each_store_of_several_tenants_is_backed_up_and_restored_alone(
    clean_store_url: str, other_url: str, store: Any, tmp_path: Path
) -> None:
    rows: dict[str, dict[str, str]] = {name: {"public_url": f"http://{name}.example"} for name in ("a", "b", "c")}
    rows["c"]["redis_url"] = other_url
    (tmp_path / "tenants.yaml").write_text(json.dumps({"tenants": rows}))
    environ = {"SAYSO_REDIS_URL": clean_store_url, "SAYSO_TENANTS": str(tmp_path / "tenants.yaml")}
    desks = list_desks(Settings(redis_url=clean_store_url, tenants=tmp_path / "tenants.yaml", home=tmp_path))
    ids = {name: await fill(desk) for name, desk in desks.items()}
    assert "The tenants lie in 2 stores. Name a tenant with --tenant" in run("save", "x", **environ).stderr
    assert "There is no tenant 'd'. Name one of a, b, c." in run("save", "x", "--tenant", "d", **environ).stderr
    assert run("save", str(tmp_path / "ab"), "--tenant", "b", **environ).returncode == 0
    save(desks["c"], tmp_path / "c")
    store.flushall()
    for some in (desks["c"],), (desks["a"],):
        with pytest.raises(InvalidInput, match=r"holds the tenants .*b, which the settings do not name for this store"):
            await bring_back(tmp_path / "ab", *some)
        assert store.dbsize() == 0
    done = run("restore", str(tmp_path / "ab"), "--tenant", "a", "--verify", **environ)
    assert (done.returncode, done.stderr, done.stdout.count("everything is frozen")) == (0, "", 2)
    await bring_back(tmp_path / "c", desks["c"])
    for name, desk in desks.items():
        assert "may have run" in await read(desk, ids[name])
    assert not store.keys("sayso:{c}:*")


@pytest.mark.parametrize("during", ["load", "void"])
async def test_killed_restore_closes_the_store_and_begins_anew_in_an_empty_one(
    clean_store_url: str, store: Any, tmp_path: Path, during: str
) -> None:
    settings, file = Settings(redis_url=clean_store_url, home=tmp_path), tmp_path / "backup"
    suspension_id = await fill(settings)
    store.mset({f"{KEYS.prefix}e:{number}": "x" for number in range(MANY)})
    save(settings, file)
    kill(clean_store_url, file, store, during)
    assert store.get(FORMAT) == b"restoring"
    with pytest.raises(OtherFormat, match="A restore into this store has not ended"):
        await check_format(clean_store_url)
    with pytest.raises(InvalidInput, match="A restore into this store has not ended, so no program starts on it"):
        await bring_back(file, settings)
    store.flushall()
    await bring_back(file, settings)
    assert "may have run" in await read(settings, suspension_id)


def kill(url: str, file: Path, store: Any, during: str) -> None:
    """Begin a restore, and kill it while it loads keys, or while it voids what may have run."""
    command = [sys.executable, "-m", "service.features.backup", "restore", str(file)]
    env = make_environ(SAYSO_REDIS_URL=url)
    with subprocess.Popen(command, cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, text=True) as restoring:
        assert restoring.stdout is not None
        if during == "load":
            assert wait_until(lambda: store.dbsize() > 1, 30)
        else:
            assert "keys restored" in restoring.stdout.readline()
        os.kill(restoring.pid, signal.SIGKILL)


async def test_backup_without_its_key_or_that_of_its_records_is_refused(
    clean_store_url: str, store: Any, tmp_path: Path
) -> None:
    for name in ("keys", "others", "backups"):
        create_key_file(tmp_path / name)
    ((other,), (key,)), file = map(read_key_file, (tmp_path / "others", tmp_path / "backups")), tmp_path / "backup"
    settings = Settings(redis_url=clean_store_url, home=tmp_path, key_file=tmp_path / "keys")
    suspension_id = await fill(settings)
    save(settings, file, key)
    for wrong in (None, other):
        with pytest.raises(InvalidInput, match=r"which the key file does not hold\. Name the file that does"):
            await bring_back(file, settings, key=wrong)
        assert store.dbsize() == 0
    for path in (None, tmp_path / "others"):
        with pytest.raises(NotVerified, match="SAYSO_KEY_FILE does not fit the restored records"):
            await bring_back(file, settings.model_copy(update={"key_file": path}), key=key)
        with pytest.raises(OtherFormat, match="A restore into this store has not ended"):
            await check_format(clean_store_url, Macs(settings.key_file))
        store.flushall()
    await bring_back(file, settings, key=key)
    assert "may have run" in await read(settings, suspension_id)


@pytest.mark.parametrize("keyed", [True, False])
async def test_cut_or_altered_file_leaves_the_store_empty(
    clean_store_url: str, store: Any, tmp_path: Path, keyed: bool
) -> None:
    settings, file = Settings(redis_url=clean_store_url, home=tmp_path), tmp_path / "backup"
    await fill(settings)
    create_key_file(tmp_path / "keys")
    key = read_key_file(tmp_path / "keys")[0] if keyed else None
    save(settings, file, key)
    whole = file.read_bytes()
    for damaged, words in (
        (whole[:-1], "is damaged: part 1 is missing or altered. Use another copy; nothing was restored"),
        (flip(whole, len(whole) // 2), "is damaged: part 1 is missing or altered"),
        (whole[:30], "is damaged: its header cannot be read"),
        (b"", "is no backup that this version of Sayso reads"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(InvalidInput, match=words):
            await bring_back(file, settings, key=key)
        assert store.dbsize() == 0


async def test_records_of_two_releases_are_backed_up_together(clean_store_url: str, store: Any, tmp_path: Path) -> None:
    settings, file = Settings(redis_url=clean_store_url, home=tmp_path), tmp_path / "backup"
    ids = [await fill(settings), await fill(settings)]
    *header, packed = store.get(KEYS.suspension(ids[0])).split(b"|", 4)
    earlier = unpack_body(packed).replace(f'"release":"{VERSION}"'.encode(), b'"release":"0.1.9"')
    assert b"0.1.9" in earlier
    store.set(KEYS.suspension(ids[0]), b"|".join((*header, b"0" + earlier)))
    save(settings, file)
    assert "2 suspensions can be read" in await bring_back(file, settings)
    assert [("may have run" in await read(settings, id_)) for id_ in ids] == [True, True]


async def test_store_or_file_of_another_format_is_refused(clean_store_url: str, store: Any, tmp_path: Path) -> None:
    """Also a store of which a part has no MACs yet, as the pass that adds them has not ended."""
    create_key_file(tmp_path / "keys")
    settings, file = Settings(redis_url=clean_store_url, home=tmp_path), tmp_path / "backup"
    await fill(settings)
    environ = {"SAYSO_REDIS_URL": clean_store_url}
    done = run("save", str(tmp_path / "x"), SAYSO_KEY_FILE=str(tmp_path / "keys"), **environ)
    assert (done.returncode, "carry no MACs, which SAYSO_KEY_FILE turns on" in done.stderr) == (1, True)
    store.set(FORMAT, "1")
    done = run("save", str(tmp_path / "x"), **environ)
    assert (done.returncode, "An earlier version of Sayso wrote this store" in done.stderr) == (1, True)
    save(settings, file, format_="1")
    with pytest.raises(InvalidInput, match=r"is of format 1, and this version reads 2. Restore it with the version"):
        await bring_back(file, settings)
    assert store.dbsize() == 0
