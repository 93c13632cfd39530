"""A store gets MACs at its first start, or once a person vouches for what it holds."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso.core.key_files import create_key_file
from sayso.errors import Altered
from service.assembly import open_process
from service.core.settings import CHECKOUT, Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.adoption import survey
from service.core.store.connection.formats import OtherMacs, check_format
from service.core.store.connection.macs import Macs
from service.core.store.keys import MACS, TenantKeys
from tests.builders import approve, make_pending
from tests.service.core.store.flipping import flip

KEYS = TenantKeys(TENANT)


@pytest.fixture
async def store(clean_store_url: str) -> AsyncIterator[Any]:
    async with Redis.from_url(clean_store_url) as client:
        yield client


async def test_store_without_macs_is_refused_until_a_person_vouches(clean_store_url: str, tmp_path: Path) -> None:
    create_key_file(tmp_path / "keys")
    create_key_file(tmp_path / "others")
    macs = Macs(tmp_path / "keys")
    plain = Settings(redis_url=clean_store_url)
    await check_format(clean_store_url)
    async with open_process(plain) as process:
        kept = await approve(process.wiring, await make_pending(process.wiring))
    with pytest.raises(OtherMacs, match="run `sayso macs`"):
        await check_format(clean_store_url, macs)
    keyed = plain.model_copy(update={"key_file": tmp_path / "keys"})
    async with open_process(keyed) as process:
        with pytest.raises(Altered):
            await process.wiring.desk.suspensions.read(kept.id)
    assert (await survey(clean_store_url, macs)).current == 0
    await survey(clean_store_url, macs, add=True)
    await check_format(clean_store_url, macs)
    async with open_process(keyed) as process:
        assert (await process.wiring.desk.suspensions.read(kept.id)).record == kept
        (ready,) = await process.wiring.schedule.take(1)
        assert process.wiring.desk.suspensions.recall_packed(ready.id, ready.packed) is not None
    with pytest.raises(OtherMacs, match="Set SAYSO_KEY_FILE"):
        await check_format(clean_store_url)
    with pytest.raises(OtherMacs, match="Put that key back"):
        await check_format(clean_store_url, Macs(tmp_path / "others"))


async def test_first_start_with_a_key_file_marks_the_empty_store(
    clean_store_url: str, store: Any, tmp_path: Path
) -> None:
    create_key_file(tmp_path / "keys")
    await check_format(clean_store_url, Macs(tmp_path / "keys"))
    await check_format(clean_store_url, Macs(tmp_path / "keys"))
    assert await store.exists(MACS)


def run_macs(url: str, said: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `sayso macs` with an answer to its question."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
    env = {**kept, "SAYSO_REDIS_URL": url, **environ}
    command = [sys.executable, "-m", "service.macs"]
    return subprocess.run(command, cwd=CHECKOUT, env=env, input=said, capture_output=True, text=True, check=False)


async def test_command_adds_macs_only_once_a_person_confirms(clean_store_url: str, store: Any, tmp_path: Path) -> None:
    create_key_file(tmp_path / "keys")
    await check_format(clean_store_url)
    async with open_process(Settings(redis_url=clean_store_url)) as process:
        kept = await make_pending(process.wiring)
    environ = {"SAYSO_KEY_FILE": str(tmp_path / "keys")}
    assert "MACs need SAYSO_KEY_FILE" in run_macs(clean_store_url, "yes\n").stderr
    for said in ("no\n", ""):
        done = run_macs(clean_store_url, said, **environ)
        assert (done.returncode, done.stderr.strip()) == (1, "Nothing was changed.")
        assert KEYS.suspension(kept.id) in done.stdout
    assert not await store.exists(MACS)
    done = run_macs(clean_store_url, "yes\n", **environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 of an earlier one, 0 none, 0 a wrong one." in done.stdout.splitlines()[-1]
    key = KEYS.suspension(kept.id)
    raw = await store.get(key)
    await store.set(key, flip(raw, 40))
    done = run_macs(clean_store_url, "yes\n", **environ)
    assert (done.returncode, await store.get(key)) == (1, flip(raw, 40))
    assert "Restore or delete the records with a wrong MAC first" in done.stderr
