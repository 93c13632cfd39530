"""The store of a running desk is emptied: it says so, takes nothing, and works again after the set-up."""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx
from redis import Redis

from demo.agents import Effects
from demo.checks import find_faults
from demo.journeys import run_demo
from demo.stacks import Stack, neutral_environ
from launch.stops import wait_until
from sayso.core.records.suspensions import RunStatus
from service.core.settings import CHECKOUT, socket_path, store_url_at
from tests.journeys.stacks import PATIENCE_S, pids_of, quick_stack

PROGRAMS = ("service", "worker", "clock")


async def test_emptied_desk_refuses_work_and_goes_on_after_the_set_up(tmp_path: Path) -> None:
    with quick_stack(tmp_path / "home") as stack:
        before = {name: pids_of(stack, name) for name in PROGRAMS}
        with Redis.from_url(store_url_at(socket_path(stack.home))) as store:
            store.flushall()

        assert wait_until(lambda: ask(stack, "/api/v1/runs").status_code == 503, PATIENCE_S)
        for path in ("/readyz", "/api/v1/runs"):
            assert "The store was emptied." in ask(stack, path).json()["detail"]

        environ = {
            **neutral_environ(),
            "SAYSO_HOME": str(stack.home),
            "SAYSO_ADMIN_PASSWORD": stack.admin_password,
            "SAYSO_KEY": stack.agent_key,
        }
        command = [sys.executable, "-m", "service.setup"]
        await asyncio.to_thread(subprocess.run, command, cwd=CHECKOUT, env=environ, check=True)

        assert ask(stack, "/readyz").status_code == 200
        journey = await run_demo(stack, lambda _: None)
        assert journey.run.status is RunStatus.COMPLETED
        assert find_faults(journey.run.status, journey.trail, Effects(stack.home).read()) == []
        assert {name: pids_of(stack, name) for name in PROGRAMS} == before


def ask(stack: Stack, path: str) -> httpx.Response:
    return httpx.get(stack.url + path, headers={"Authorization": f"Bearer {stack.agent_key}"}, timeout=10)
