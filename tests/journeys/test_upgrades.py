"""The release before and this version serve one store, side by side and one after the other, while runs go on."""

import asyncio
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from demo.agents import Effects
from demo.journeys import AGENT, connected, review
from demo.model import load_turns
from demo.stacks import Stack, neutral_environ, running_stack
from launch.server import running_server
from sayso.core.clock import new_secret
from sayso.core.key_files import create_key_file
from sayso.core.records.suspensions import RunStatus
from service.core.settings import CHECKOUT
from tests.journeys.stacks import QUICK, await_pause

MAILS = load_turns()[1]
SENT_TO = "john.doe@example.com"
FIRST = (0, 2)
"""The first minor release that later ones share a store with."""


@cache
def find_before() -> str:
    """Return the commit of the newest release before this checkout; empty without one in its history."""
    for version in re.findall(r"^## (\d+\.\d+\.\d+) - ", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE):
        pattern = f"^## {re.escape(version)} - "
        commits = _git("log", "--format=%H", f"-G{pattern}", "--", "CHANGELOG.md").split()
        if tuple(map(int, version.split(".")[:2])) >= FIRST and commits and commits[-1] != _git("rev-parse", "HEAD"):
            return commits[-1]
    return ""


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


pytestmark = pytest.mark.skipif(not find_before(), reason="the history of this checkout has no release before it")


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The release before, in a folder of its own. It runs with the packages of this version."""
    packed = subprocess.run(["git", "archive", find_before()], cwd=CHECKOUT, capture_output=True, check=True)
    folder = tmp_path / "before"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Fleet:
    """Two versions on one store, and the runs that wait in it."""

    def __init__(self, folder: Path, store: str, before: Path) -> None:
        self._folder, self._before = folder, before
        self._environ = {
            **QUICK,
            "SAYSO_REDIS_URL": store,
            "SAYSO_ADMIN_PASSWORD": new_secret(),
            "SAYSO_KEY": new_secret(),
        }
        self.runs: list[str] = []

    @contextmanager
    def running(self, version: str) -> Iterator[Stack]:
        checkout = self._before if version == "before" else CHECKOUT
        with running_stack(self._folder / version, self._environ, checkout=checkout) as stack:
            yield stack

    async def ask(self, stack: Stack, count: int) -> list[str]:
        """Start runs that wait for a person; return their suspensions."""
        async with connected(stack) as (agent, _):
            paused = []
            for _ in range(count):
                run = await agent.start_run(AGENT, MAILS.request, "Mails", key=new_secret())
                self.runs.append(run.id)
                paused.append((await await_pause(agent, run.id)).suspension_id)
            return paused

    async def decide(self, stack: Stack, suspensions: list[str]) -> None:
        async with connected(stack) as (_, reviewer):
            for suspension_id in suspensions:
                await review(reviewer, suspension_id, lambda _: None)

    async def load(self, asked: Stack, deciding: Stack, count: int = 5) -> None:
        """Ask one version and decide with the other, again and again."""
        for _ in range(count):
            await self.decide(deciding, await self.ask(asked, 1))
            await check_ready(asked, deciding)

    async def end_all(self, stack: Stack) -> None:
        """Wait until all runs have ended; each has sent its mail once."""
        async with connected(stack) as (agent, _):
            statuses = {run_id: (await agent.await_end(run_id)).status for run_id in self.runs}
        assert set(statuses.values()) == {RunStatus.COMPLETED}, statuses
        effects = [effect for version in ("before", "after") for effect in Effects(self._folder / version).read()]
        sent = [effect.run_id for effect in effects if effect.args["to"] == SENT_TO]
        assert sorted(sent) == sorted(self.runs)


async def check_ready(*stacks: Stack) -> None:
    """Fail if a service is not ready, or has found a record that it cannot read."""
    for stack in stacks:
        async with httpx.AsyncClient(base_url=stack.url) as http:
            answer = await http.get("/readyz")
        assert (answer.status_code, answer.json()["unreadable"]) == (200, 0), answer.text


@pytest.mark.timeout(600)  # four starts of a whole installation, with others beside on a busy machine
async def test_rolling_upgrade_and_roll_back_lose_nothing_and_run_nothing_twice(tmp_path: Path, before: Path) -> None:
    with running_server(tmp_path / "store") as store:
        fleet = Fleet(tmp_path, store, before)
        with fleet.running("before") as old:
            asked = await fleet.ask(old, 3)
            with fleet.running("after") as new:
                made = await fleet.ask(new, 3)
                await asyncio.gather(fleet.decide(new, asked[:1]), fleet.decide(old, made[:1]))
                await asyncio.gather(fleet.load(old, new), fleet.load(new, old))
        with fleet.running("after") as new:
            await fleet.decide(new, asked[1:2] + made[1:2])
            newest = await fleet.ask(new, 2)
            await check_ready(new)
        with fleet.running("before") as old:
            await fleet.decide(old, asked[2:] + made[2:] + newest)
            await fleet.end_all(old)
            await check_ready(old)


class Seen(NamedTuple):
    """What one version answers on a store: its status for each list, and what its doctor says of records."""

    tokens: dict[str, str]
    statuses: dict[str, int]
    records: str
    trails: str


def read_desk(checkout: Path, folder: Path, store: str, tokens: dict[str, str]) -> Seen:
    """Read all lists with the version in `checkout`. Without tokens, it makes one of each kind of record first."""
    program = CHECKOUT / "tests" / "journeys" / "desk_of_each_kind.py"
    done = subprocess.run(
        [sys.executable, program, store, folder, json.dumps(tokens)],
        cwd=checkout,
        env={**neutral_environ(), "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return Seen(**json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("writer", ["before", "after"])
def test_each_kind_of_record_is_read_or_named_by_the_other_release(tmp_path: Path, before: Path, writer: str) -> None:
    create_key_file(tmp_path / "keys")
    first, second = (before, CHECKOUT) if writer == "before" else (CHECKOUT, before)
    with running_server(tmp_path / "store") as store:
        made = read_desk(first, tmp_path, store, {})
        read = read_desk(second, tmp_path, store, made.tokens)
    assert not [path for path, status in {**made.statuses, **read.statuses}.items() if status >= 500]
    assert ALL_READ.fullmatch(made.records), made.records
    if writer == "before":
        assert (read.records, read.trails) == (made.records, made.trails)
    else:  # what only later ones can read stays as it is
        assert ALL_READ.fullmatch(read.records) or LATER.search(read.records), read.records


ALL_READ = re.compile(r"All \d+ checked records can be read\.")
LATER = re.compile(r"A later version of Sayso may have written it|Sayso \S+ wrote it, and this is")
