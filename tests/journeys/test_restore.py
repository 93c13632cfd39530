"""The drill: a desk is backed up under load, lost later, and restored; no call runs twice, and people say what ran."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.stacks import Stack, neutral_environ
from launch.server import running_server
from launch.stops import wait_until
from sayso.core.canonical_json import JsonObject
from sayso.core.key_files import create_key_file
from service.core.settings import CHECKOUT
from tests.journeys.paying_agents import paid_in
from tests.journeys.stacks import PATIENCE_S, quick_stack
from tests.waits import working_beside

POLICY = "version: 1\ndefault: request_approval\nrules: []\n"
AGENTS = ",".join(["demo.agents:support", *(f"tests.journeys.paying_agents:{name}" for name in ("payer", "closer"))])
HELD = 6  # runs; a worker that has not heard of the freeze may start the first of them
SKIP: JsonObject = {"action": "value", "value": {"choice": "skip", "result": "it had been paid"}}


class Desk:
    """What an agent and an admin send to a running desk."""

    def __init__(self, stack: Stack) -> None:
        self._http = httpx.Client(base_url=f"{stack.url}/api/v1", timeout=30)
        self.agent = {"Authorization": f"Bearer {stack.agent_key}"}
        made = self._http.post("/sessions", json={"name": "admin", "password": stack.admin_password})
        self.admin = {"Authorization": f"Bearer {made.raise_for_status().json()['token']}"}

    def start(self, number: int, agent: str = "payer") -> None:
        body = {"agent": agent, "input": "Pay.", "title": agent}
        headers = {**self.agent, "Idempotency-Key": f"start-{agent}-{number}"}
        self._http.post("/runs", json=body, headers=headers).raise_for_status()

    def hold_approved(self) -> tuple[dict[str, Any], set[str]]:
        """Approve all calls of runs of an agent that was frozen just now; return its freeze and their suspensions."""
        for number in range(HELD):
            self.start(number, "closer")
        assert wait_until(lambda: len(self.list_open()) == 2 * HELD, PATIENCE_S)
        answer = self._http.post("/freezes", json={"scope": "agent:closer"}, headers=self.admin)
        opened = self.list_open()
        for suspension_id, item in opened:
            self.decide(suspension_id, item, {"action": "approve"})
        freeze: dict[str, Any] = answer.raise_for_status().json()
        return freeze, {suspension_id for suspension_id, _ in opened}

    def list_open(self) -> list[tuple[str, dict[str, Any]]]:
        page = self._http.get("/suspensions", params={"limit": 100}, headers=self.admin).raise_for_status().json()
        return [(row["id"], item) for row in page["suspensions"] for item in row["items"] if item["outcome"] is None]

    def decide(self, suspension_id: str, item: dict[str, Any], decision: dict[str, Any]) -> None:
        path = f"/suspensions/{suspension_id}/items/{item['item_id']}/decision"
        answer = self._http.post(path, json={**decision, "digest": item["digest"]}, headers=self.admin)
        assert answer.status_code in (200, 409), answer.text

    def count_active(self) -> int:
        pages = [
            self._http.get("/runs", params={"status": status}, headers=self.admin).raise_for_status().json()
            for status in ("running", "suspended")
        ]
        return sum(len(page["runs"]) for page in pages)

    def list_freezes(self) -> list[dict[str, Any]]:
        page = self._http.get("/freezes", headers=self.admin).raise_for_status().json()
        return [freeze for freeze in page["freezes"] if freeze["unfrozen_at"] is None]

    def unfreeze(self, freeze: dict[str, Any]) -> None:
        self._http.post(f"/freezes/{freeze['id']}/unfreeze", headers=self.admin).raise_for_status()


@contextmanager
def load(desk: Desk) -> Iterator[None]:
    """Start runs, and approve two of three items, until the end of the block."""

    def work(stop: threading.Event) -> None:
        number = 0
        while not stop.is_set():
            desk.start(number)
            number += 1
            for place, (suspension_id, item) in enumerate(desk.list_open()):
                if place % 3:
                    desk.decide(suspension_id, item, {"action": "approve"})

    with working_beside(work):
        yield


def run(act: str, *args: str, **environ: str) -> str:
    """Run `sayso backup` or `sayso restore` as their programs; return the output."""
    command = [sys.executable, "-m", "sayso", act, *args]
    env = {**neutral_environ(), **environ}
    done = subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def settle(desk: Desk, home: Path) -> Callable[[], bool]:
    """Return a function that answers all open items by what was paid, and says whether no run is left."""

    def answer() -> bool:
        for suspension_id, item in desk.list_open():
            paid = f"{suspension_id}:{item['item_id']}" in paid_in(home)
            if item["doubt"] is not None:
                desk.decide(suspension_id, item, SKIP)
            else:
                desk.decide(suspension_id, item, {"action": "deny" if paid else "approve"})
        return not desk.count_active()

    return answer


@pytest.mark.timeout(400)
def test_restored_desk_runs_nothing_twice_and_asks_about_calls_in_doubt(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "backup"
    (tmp_path / "policy.yaml").write_text(POLICY)
    create_key_file(tmp_path / "keys")
    common = {"SAYSO_KEY_FILE": str(tmp_path / "keys"), "SAYSO_POLICY": str(tmp_path / "policy.yaml")}
    common |= {"SAYSO_AGENTS": AGENTS, "SAYSO_ADMIN_PASSWORD": "correct-horse-battery", "SAYSO_KEY": "drill-key-" * 4}
    with running_server(tmp_path / "first") as url:
        environ = {**common, "SAYSO_REDIS_URL": url}
        with quick_stack(home, **environ) as stack:
            desk = Desk(stack)
            freeze, held = desk.hold_approved()
            with load(desk):
                assert wait_until(lambda: len(paid_in(home)) >= 5, PATIENCE_S)
                print(run("backup", str(file), **environ, SAYSO_HOME=str(home)))
                desk.unfreeze(freeze)
                assert wait_until(lambda: held <= {key.partition(":")[0] for key in paid_in(home)}, PATIENCE_S)
    before = paid_in(home)
    assert len(set(before)) == len(before)
    with running_server(tmp_path / "second") as url:
        environ = {**common, "SAYSO_REDIS_URL": url}
        begun = time.monotonic()
        said = run("restore", str(file), "--verify", **environ, SAYSO_HOME=str(home))
        with quick_stack(home, **environ) as stack:
            desk = Desk(stack)
            print(said, f"{time.monotonic() - begun:.1f} s from the begin of the restore to the first request")
            freezes = desk.list_freezes()
            assert {freeze["scope"] for freeze in freezes} == {"agent:closer", "all"}
            assert paid_in(home) == before
            for freeze in freezes:
                desk.unfreeze(freeze)
            assert wait_until(lambda: any(item["doubt"] for _, item in desk.list_open()), PATIENCE_S)
            assert wait_until(settle(desk, home), PATIENCE_S)
    after = paid_in(home)
    assert len(set(after)) == len(after), "no call ran twice"
    assert after[: len(before)] == before
