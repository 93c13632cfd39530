"""The drill: one of two tenants moves to another store under load; its decisions are kept, and no call runs twice."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.stacks import find_ports, neutral_environ
from launch.server import running_server
from launch.stops import wait_until
from sayso.core.clock import new_id
from sayso.core.key_files import create_key_file
from service.assembly import assemble
from service.core.settings import CHECKOUT, Settings
from service.core.settings.tenants import list_desks
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from tests.builders import make_agent, make_person
from tests.journeys.paying_agents import TURNS, paid_in
from tests.journeys.stacks import PATIENCE_S
from tests.waits import working_beside

TENANTS = ("acme", "globex")
POLICY = "version: 1\ndefault: request_approval\nrules: []\n"
CALL = {"tool": "pay_back", "args": {"order": "4711"}, "definition": {"description": "Pay.", "parameters": {}}}
SOME = 6


class Desk:
    """What an agent and a reviewer of one tenant send, with what the desk confirmed."""

    def __init__(self, tenant: str, port: int, agent: str, reviewer: str) -> None:
        host = {"Host": f"{tenant}.example:{port}"}
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=host, timeout=30)
        self.agent = {"Authorization": f"Bearer {agent}"}
        self.reviewer = {"Authorization": f"Bearer {reviewer}"}
        self.runs: set[str] = set()
        self.approved: set[tuple[str, str]] = set()
        self.refusals: set[str] = set()

    def send(self, method: str, path: str, who: dict[str, str], **request: Any) -> httpx.Response | None:
        """Return the answer; None while the service restarts."""
        try:
            answer = self._http.request(method, path, headers={**who, **request.pop("headers", {})}, **request)
        except httpx.TransportError:
            return None
        if answer.status_code == 503:
            assert answer.headers["Retry-After"]
            self.refusals.add(answer.json()["detail"])
        return answer

    def start(self, number: int) -> bool:
        """Start a run; return whether the desk confirmed it."""
        body = {"agent": "payer", "input": "Pay.", "title": "Payments"}
        answer = self.send("POST", "/runs", self.agent, json=body, headers={"Idempotency-Key": f"start-{number}"})
        if answer is None or not answer.is_success:
            return False
        self.runs.add(answer.json()["id"])
        return True

    def approve_all(self) -> int:
        """Approve all open items of runs; return how many are open."""
        page = self.send("GET", "/suspensions", self.reviewer, params={"limit": 100})
        rows = page.json()["suspensions"] if page is not None and page.is_success else []
        open_items = [(row["id"], item) for row in rows for item in row["items"] if item["outcome"] is None]
        for suspension_id, item in open_items:
            self.approve(suspension_id, item)
        return len(open_items)

    def approve(self, suspension_id: str, item: dict[str, Any]) -> None:
        path = f"/suspensions/{suspension_id}/items/{item['item_id']}/decision"
        answer = self.send("POST", path, self.reviewer, json={"action": "approve", "digest": item["digest"]})
        if answer is not None and answer.status_code == 200:
            self.approved.add((suspension_id, item["item_id"]))

    def hold_permits(self) -> list[str]:
        """Approve calls that their client runs; return their suspensions."""
        ids = []
        for number in range(SOME):
            headers = {"Idempotency-Key": f"permit-{number}"}
            body = {"mode": "poll", "calls": [CALL]}
            asked = self.send("POST", "/suspensions", self.agent, json=body, headers=headers)
            assert asked is not None
            record = asked.raise_for_status().json()
            self.approve(record["id"], record["items"][0])
            ids.append(record["id"])
        return ids

    def redeem(self, suspension_id: str) -> int:
        answer = self.send(
            "POST",
            f"/suspensions/{suspension_id}/items/i1/redeem",
            self.agent,
            headers={"Idempotency-Key": new_id("client")},
        )
        assert answer is not None
        return answer.status_code

    def is_served(self) -> bool:
        answer = self.send("GET", "/runs", self.agent)
        return answer is not None and answer.status_code == 200

    def find_status(self, run_id: str) -> str:
        answer = self.send("GET", f"/runs/{run_id}", self.agent)
        return str(answer.json()["status"]) if answer is not None and answer.is_success else ""

    def find_outcome(self, suspension_id: str, item_id: str) -> Any:
        answer = self.send("GET", f"/suspensions/{suspension_id}", self.reviewer)
        assert answer is not None
        items = answer.raise_for_status().json()["items"]
        return next(item["outcome"] for item in items if item["item_id"] == item_id)


@contextmanager
def load(desk: Desk) -> Iterator[None]:
    """Start runs and approve their calls until the end of the block."""

    def work(stop: threading.Event) -> None:
        number = 0
        while not stop.wait(0.05):
            if desk.approve_all() < 2 * SOME:
                number += desk.start(number)  # a start that was not confirmed is sent again

    with working_beside(work):
        yield


class Programs:
    """The service, and a worker and a clock of each tenant."""

    def __init__(self, folder: Path, store_url: str, port: int) -> None:
        self.folder, self.port, self.file = folder, port, folder / "tenants.yaml"
        create_key_file(folder / "keys")
        (folder / "policy.yaml").write_text(POLICY)
        self.environ = {
            "SAYSO_REDIS_URL": store_url,
            "SAYSO_TENANTS": str(self.file),
            "SAYSO_PORT": str(port),
            "SAYSO_KEY_FILE": str(folder / "keys"),
            "SAYSO_POLICY": str(folder / "policy.yaml"),
            "SAYSO_AGENTS": "tests.journeys.paying_agents:payer",
            "SAYSO_LEASE_S": "2",
            "SAYSO_DRAIN_WINDOW_S": "2",
        }
        self.map()
        self._running: dict[tuple[str, str], subprocess.Popen[bytes]] = {}

    def map(self, **urls: str) -> None:
        """Write the tenants' file, with the stores of those that have one of their own."""
        rows = {name: {"public_url": f"http://{name}.example:{self.port}"} for name in TENANTS}
        own = {name: {"redis_url": url} for name, url in urls.items()}
        self.file.write_text(
            json.dumps({"tenants": {name: {**row, **own.get(name, {})} for name, row in rows.items()}})
        )

    def home(self, tenant: str) -> Path:
        return self.folder / tenant

    def start(self, module: str, tenant: str = "acme") -> None:
        environ = {**neutral_environ(), **self.environ, "SAYSO_TENANT": tenant, "SAYSO_HOME": str(self.home(tenant))}
        self._running[module, tenant] = subprocess.Popen([sys.executable, "-m", module], cwd=CHECKOUT, env=environ)

    def restart(self, module: str, tenant: str = "acme") -> None:
        self.end(self._running[module, tenant])
        self.start(module, tenant)

    def end(self, child: subprocess.Popen[bytes]) -> None:
        child.terminate()
        try:
            child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def end_all(self) -> None:
        for child in self._running.values():
            self.end(child)

    def move(self, url: str, *options: str) -> subprocess.Popen[str]:
        """Start `sayso move-tenant acme`."""
        command = [sys.executable, "-m", "sayso", "move-tenant", "acme", "--to", url, *options]
        environ = {**neutral_environ(), **self.environ, "SAYSO_HOME": str(self.home("acme"))}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=CHECKOUT, env=environ, stdout=pipe, stderr=pipe, text=True)


async def make_desk(programs: Programs, tenant: str) -> Desk:
    url, folder = programs.environ["SAYSO_REDIS_URL"], programs.folder
    settings = Settings(redis_url=url, home=folder / "setup", tenants=programs.file, key_file=folder / "keys")
    desk = list_desks(settings)[tenant]
    await check_format(desk.store_url, Macs(desk.key_file))
    async with assemble(desk) as wiring:
        return Desk(tenant, programs.port, await make_agent(wiring, "bot"), await make_person(wiring, "anna"))


def finish_all(desk: Desk) -> bool:
    """Approve what is open; return whether all runs have ended."""
    desk.approve_all()
    return all(desk.find_status(run_id) == "completed" for run_id in desk.runs)


@pytest.mark.timeout(600)
async def test_tenant_moves_under_load_and_nothing_is_lost_or_runs_twice(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(running_server(tmp_path / "first"))
        second = stack.enter_context(running_server(tmp_path / "second"))
        programs = Programs(tmp_path, first, find_ports())
        stack.callback(programs.end_all)
        acme, globex = [await make_desk(programs, tenant) for tenant in TENANTS]
        programs.start("service")
        for tenant in TENANTS:
            programs.start("workers", tenant)
            programs.start("workers.clock", tenant)
        assert wait_until(lambda: acme.is_served() and globex.is_served(), 2 * PATIENCE_S)
        permits = acme.hold_permits()
        assert [acme.redeem(permit) for permit in permits[: SOME // 2]] == [200] * (SOME // 2)
        globex.refusals.clear()
        with load(acme), load(globex):
            assert wait_until(lambda: len(paid_in(programs.home("acme"))) >= 10, PATIENCE_S)
            kill_while_held(programs, second)
            assert wait_until(lambda: not acme.is_served(), PATIENCE_S)
            assert wait_until(acme.is_served, PATIENCE_S), "the hold of a killed move ends by itself"
            before = len(paid_in(programs.home("acme")))
            assert wait_until(lambda: len(paid_in(programs.home("acme"))) > before, PATIENCE_S)
            mover = programs.move(second)
            said, faults = mover.communicate(timeout=120)
            print(said)
            assert (mover.returncode, faults) == (0, "")
            assert wait_until(lambda: "was moved to another store" in " ".join(acme.refusals), PATIENCE_S)
            assert not acme.is_served()
            served = len(paid_in(programs.home("globex")))
            assert wait_until(lambda: len(paid_in(programs.home("globex"))) > served, PATIENCE_S)
            assert not globex.refusals, "the other tenant is served all the time"
            programs.map(acme=second)
            for module in ("service", "workers", "workers.clock"):
                programs.restart(module)
            assert wait_until(acme.is_served, 2 * PATIENCE_S)
            before = len(paid_in(programs.home("acme")))
            assert wait_until(lambda: len(paid_in(programs.home("acme"))) >= before + 10, PATIENCE_S)
        assert wait_until(lambda: finish_all(acme) and finish_all(globex), 2 * PATIENCE_S)
        check_nothing_lost(acme, paid_in(programs.home("acme")), permits)
        back = programs.move(first, "--back")
        _, faults = back.communicate(timeout=60)
        assert back.returncode == 1
        assert "Nothing was changed" in faults or "is live" in faults


def kill_while_held(programs: Programs, url: str) -> None:
    """Start a move, and kill it as soon as the tenant is held."""
    mover = programs.move(url)
    assert mover.stdout is not None
    assert "acme is held" in mover.stdout.readline()
    mover.kill()
    mover.communicate()


def check_nothing_lost(desk: Desk, paid: list[str], permits: list[str]) -> None:
    """Check that all that was confirmed is there, and that each approved call ran once."""
    assert len(paid) == len(set(paid)) == len(desk.runs) * TURNS
    print(f"{len(desk.runs)} runs, {len(desk.approved)} confirmed decisions, {len(paid)} payments")
    for suspension_id, item_id in desk.approved:
        assert desk.find_outcome(suspension_id, item_id)["verdict"] == "approved"
    used, unused = permits[: SOME // 2], permits[SOME // 2 :]
    assert [desk.redeem(permit) for permit in used] == [409] * len(used)
    assert [desk.redeem(permit) for permit in unused] == [200] * len(unused)
    assert [desk.redeem(permit) for permit in unused] == [409] * len(unused)
