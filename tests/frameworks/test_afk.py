"""Tests of AFK's events, and of agents that wait in their own process."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo.stacks import neutral_environ
from launch.stops import wait_until
from sayso.client import Client
from service.core.settings import CHECKOUT
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.features.insights.totals import Totals, parse_totals
from tests.frameworks.conftest import CHOSEN
from tests.frameworks.installations import PATIENCE_S, Installation, running_installation, write_script
from tests.frameworks.test_conformance import decide, finished, money

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=[one for one in CHOSEN if one.name == "afk"], ids=lambda kind: kind.name)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A Sayso whose workers run the AFK bot."""
    with running_installation(request.param, tmp_path_factory.mktemp("afk")) as installation:
        yield installation


async def test_events_before_the_suspension_are_on_the_timeline(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5)])
        headers = {"Authorization": f"Bearer {installation.stack.agent_key}"}
        async with httpx.AsyncClient(base_url=installation.stack.url, headers=headers) as http:
            results = (await http.get(f"/api/v1/runs/{waiting.run_id}/events/external")).json()
        kinds = [one["event"]["type"] for one in results["events"]]
        assert (kinds[0], kinds[-1]) == ("run_started", "run_paused")
        before = read_totals(installation)
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        await finished(agent, waiting.run_id)
        assert len(installation.effects()) == 1
    after = read_totals(installation)
    assert after.calls["execute"].total == before.calls["execute"].total + 1
    assert after.batches["execute"].total == before.batches["execute"].total + 1


def read_totals(installation: Installation) -> Totals:
    """Return the totals of which `/metrics` tells."""
    with installation.store as store:
        fields: dict[bytes, bytes] = store.hgetall(TenantKeys(TENANT).totals)
    return parse_totals({field.decode(): int(by) for field, by in fields.items()})


def test_desk_gives_the_same_decision_after_its_process_died(installation: Installation) -> None:
    first = begin(installation, write_script([money("ann", 5)]))
    with Client(installation.stack.url, "-") as reviewer:
        reviewer.sign_in("admin", installation.stack.admin_password)
        assert wait_until(lambda: bool(reviewer.waiting().suspensions), PATIENCE_S)
        first.kill()
        first.wait()
        assert not Path(f"/proc/{first.pid}").exists()
        (asked,) = reviewer.waiting().suspensions
        reviewer.decide(asked.id, asked.items[0], "approve", args={"to": "ann", "amount": 3})
    given = [installation.stack.url, installation.stack.agent_key, "resume"]
    second = json.loads(installation.run("tests.frameworks.run_afk_desk", *given))
    (done,) = installation.effects()
    assert (done["args"], done["pid"]) == ({"to": "ann", "amount": 3}, second["pid"])
    assert second["pid"] != first.pid
    again = json.loads(installation.run("tests.frameworks.run_afk_desk", *given))
    assert (again["text"], len(installation.effects())) == (second["text"], 1)


def test_workers_run_with_the_redis_version_of_afk(installation: Installation) -> None:
    """This module and AFK's scenarios run in this environment."""
    command = [str(installation.kind.python), "-c", "import redis; print(redis.__version__)"]
    assert subprocess.check_output(command, text=True).strip() == "7.2.0"
    assert installation.worker_pids()


def begin(installation: Installation, script: str) -> subprocess.Popen[str]:
    """Start a run in a process that waits for decisions."""
    child = subprocess.Popen(
        [
            str(installation.kind.python),
            "-m",
            "tests.frameworks.run_afk_desk",
            installation.stack.url,
            installation.stack.agent_key,
        ],
        cwd=CHECKOUT,
        env={**neutral_environ(), "BOT_HOME": str(installation.home)},
        stdin=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    child.stdin.write(script)
    child.stdin.close()
    return child
