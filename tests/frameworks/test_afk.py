"""Tests of AFK's events, and of agents that wait in their own process."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo.stacks import neutral_environ
from launch.waits import wait_until
from sayso.client import Client
from service.settings import CHECKOUT
from tests.frameworks.conftest import CHOSEN
from tests.frameworks.stands import PATIENCE_S, Stand, running_stand, write_script
from tests.frameworks.test_conformance import decide, finished, money

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=[one for one in CHOSEN if one.name == "afk"], ids=lambda kind: kind.name)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A Sayso whose workers run the AFK bot."""
    with running_stand(request.param, tmp_path_factory.mktemp("afk")) as stand:
        yield stand


async def test_events_before_the_suspension_are_on_the_timeline(stand: Stand) -> None:
    async with stand.people() as (agent, reviewer):
        waiting = stand.suspend([money("ann", 5)])
        headers = {"Authorization": f"Bearer {stand.stack.agent_key}"}
        async with httpx.AsyncClient(base_url=stand.stack.url, headers=headers) as http:
            told = (await http.get(f"/api/v1/runs/{waiting.run_id}/events/external")).json()
        kinds = [one["event"]["type"] for one in told["events"]]
        assert (kinds[0], kinds[-1]) == ("run_started", "run_paused")
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        await finished(agent, waiting.run_id)
        assert len(stand.effects()) == 1


def test_desk_gives_the_same_decision_after_its_process_died(stand: Stand) -> None:
    first = begin(stand, write_script([money("ann", 5)]))
    with Client(stand.stack.url, "-") as reviewer:
        reviewer.sign_in("admin", stand.stack.admin_password)
        assert wait_until(lambda: bool(reviewer.waiting().suspensions), PATIENCE_S)
        first.kill()
        first.wait()
        assert not Path(f"/proc/{first.pid}").exists()
        (asked,) = reviewer.waiting().suspensions
        reviewer.decide(asked.id, asked.items[0], "approve", args={"to": "ann", "amount": 3})
    given = [stand.stack.url, stand.stack.agent_key, "resume"]
    second = json.loads(stand.run("tests.frameworks.waits", *given))
    (done,) = stand.effects()
    assert (done["args"], done["pid"]) == ({"to": "ann", "amount": 3}, second["pid"])
    assert second["pid"] != first.pid
    again = json.loads(stand.run("tests.frameworks.waits", *given))
    assert (again["text"], len(stand.effects())) == (second["text"], 1)


def test_workers_run_with_the_redis_version_of_afk(stand: Stand) -> None:
    """This module and AFK's scenarios run in this environment."""
    command = [str(stand.kind.python), "-c", "import redis; print(redis.__version__)"]
    assert subprocess.check_output(command, text=True).strip() == "7.2.0"
    assert stand.worker_pids()


def begin(stand: Stand, script: str) -> subprocess.Popen[str]:
    """Start a run in a process that waits for decisions."""
    child = subprocess.Popen(
        [str(stand.kind.python), "-m", "tests.frameworks.waits", stand.stack.url, stand.stack.agent_key],
        cwd=CHECKOUT,
        env={**neutral_environ(), "BOT_HOME": str(stand.home)},
        stdin=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    child.stdin.write(script)
    child.stdin.close()
    return child
