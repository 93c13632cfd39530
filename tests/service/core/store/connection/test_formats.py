"""A store names the format it is written in, and a process that cannot read that format does not start."""

import os
import subprocess
import sys

import pytest
from redis import Redis

from service.core.settings import CHECKOUT
from service.core.store.connection.formats import CURRENT, OtherFormat, check_format
from service.core.store.keys import FORMAT


async def test_the_first_start_notes_the_format(clean_store_url: str) -> None:
    await check_format(clean_store_url)
    await check_format(clean_store_url)
    with Redis.from_url(clean_store_url) as store:
        assert store.get(FORMAT) == str(CURRENT).encode()


@pytest.mark.parametrize("found", [str(CURRENT + 1), "1", "one", "-1", ""])
async def test_a_format_that_cannot_be_read_is_refused(clean_store_url: str, found: str) -> None:
    with Redis.from_url(clean_store_url) as store:
        store.set(FORMAT, found)
    with pytest.raises(OtherFormat, match="reads format 2 only"):
        await check_format(clean_store_url)
    with Redis.from_url(clean_store_url) as store:
        assert store.get(FORMAT) == found.encode()


async def test_an_earlier_store_without_a_format_is_refused(clean_store_url: str) -> None:
    with Redis.from_url(clean_store_url) as store:
        store.set("sayso:{default}:s:sus_1", "0|0||x|")
    with pytest.raises(OtherFormat, match="An earlier version of Sayso wrote this store"):
        await check_format(clean_store_url)
    with Redis.from_url(clean_store_url) as store:
        assert store.keys() == [b"sayso:{default}:s:sus_1"]


async def test_emptied_store_takes_the_format_beside_running_processes(clean_store_url: str) -> None:
    with Redis.from_url(clean_store_url) as store:
        rules = ("rules", "rulebook", "rule-changes", "rule-versions", "rule-version:05ef4adf041ba0e2")
        refusals = ("activity", "refusals:498789")
        for name in ("agents", "clock", "definitions", "starts", "waiting", "retained", "buckets", *rules, *refusals):
            store.set(f"sayso:{{default}}:{name}", "written by a process that runs on")
        await check_format(clean_store_url)
        assert store.get(FORMAT) == str(CURRENT).encode()


@pytest.mark.parametrize("module", ["service", "workers", "workers.clock", "service.setup"])
def test_no_program_starts_on_a_store_of_a_later_version(clean_store_url: str, module: str) -> None:
    with Redis.from_url(clean_store_url) as store:
        store.set(FORMAT, CURRENT + 1)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
        done = subprocess.run(
            [sys.executable, "-m", module],
            cwd=CHECKOUT,
            env={**kept, "SAYSO_REDIS_URL": clean_store_url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert "Start the version that wrote it" in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        assert store.keys() == [FORMAT.encode()], "nothing was written"
