"""Let a storm pass over a whole Sayso of real processes, and keep the three inputs from which it is judged."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict

from demo.stacks import Stack, running_stack
from sayso.clock import monotonic_ms, new_secret
from service.settings.limits import UNLIMITED
from tests.chaos.agents import PATHS
from tests.chaos.clients import PAUSE_S, Clients
from tests.chaos.drivers import AT_ONCE, Driver
from tests.chaos.freezers import Freezer
from tests.chaos.killers import Killer
from tests.chaos.logs import ClientLog
from tests.chaos.plans import AGENT_KEY, AGENTS, REVIEWERS, dice
from tests.chaos.trails import save_trails

ADMIN = "admin"
SETTINGS = {
    "SAYSO_LEASE_S": "2",
    "SAYSO_DRAIN_WINDOW_S": "2",
    "SAYSO_WORKERS": "2",
    "SAYSO_AGENTS": PATHS,
    "SAYSO_POLICY": str(Path(__file__).with_name("policy.yaml")),
    "SAYSO_MODEL_URL": "http://127.0.0.1:9/v1",
    "SAYSO_LOG_LEVEL": "warning",
    **UNLIMITED,
}
"""Short leases and windows, so that everything that follows from a kill happens often."""

FREEZERS = 2
"""How many admins freeze and lift: what they freeze overlaps."""

RUNS_OF_A_CALM = 2_000
"""From so many runs on, freezes come more seldom in a longer storm, so that there are some hundreds at most."""

_AHEAD = 2
"""How many kills' worth of runs may be started before the kills themselves, and the other way round."""


@dataclass(frozen=True)
class Passed:
    """A storm that is over: what was killed, how often something was frozen, and how long it took."""

    runs: int
    killed: Counter[str]
    frozen: int
    took_s: float


class _AgentSeen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str


class _AgentsSeen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    agents: tuple[_AgentSeen, ...]


class _SessionSeen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    token: str


def pass_over(home: Path, runs: int, kills: int, seed: int) -> Passed:
    """Run the storm in a Sayso of its own in `home`; afterwards client log, trails and effects lie there."""
    with running_stack(home, SETTINGS) as stack:
        return asyncio.run(_pass_over(stack, runs, kills, seed))


async def _pass_over(stack: Stack, runs: int, kills: int, seed: int) -> Passed:
    log = ClientLog(stack.home)
    began_ms = monotonic_ms()
    async with _clients(stack, log, seed, runs) as (clients, freezers):
        runs_a_kill = runs / max(1, kills)
        killer = Killer(stack, seed, kills, lambda done: driver.started + _AHEAD * runs_a_kill >= done * runs_a_kill)
        driver = Driver(clients, seed, runs, lambda number: number <= (killer.done + _AHEAD) * runs_a_kill or not kills)
        over = asyncio.Event()
        freezing = asyncio.gather(*(freezer.run(over) for freezer in freezers))
        async with asyncio.TaskGroup() as group:
            group.create_task(killer.run())
            group.create_task(driver.drive())
        over.set()
        await freezing
        took_s = (monotonic_ms() - began_ms) / 1000
        await save_trails(clients, driver.run_ids, stack.home)
    log.close()
    return Passed(runs, killer.killed, sum(freezer.frozen for freezer in freezers), took_s)


@asynccontextmanager
async def _clients(stack: Stack, log: ClientLog, seed: int, runs: int) -> AsyncIterator[tuple[Clients, list[Freezer]]]:
    """Give everybody who takes part a credential, and wait for the agents."""
    limits = httpx.Limits(max_connections=4 * AT_ONCE, max_keepalive_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=stack.url, limits=limits) as http:
        admin = await _sign_in(http, ADMIN, stack.admin_password)
        tokens = {AGENT_KEY: stack.agent_key}
        for name in REVIEWERS:
            password = new_secret()
            added = await http.post(
                "/api/v1/reviewers", json={"name": name, "password": password}, headers=_bearer(admin)
            )
            added.raise_for_status()
            tokens[name] = await _sign_in(http, name, password)
        clients = Clients(http, log, tokens, dice(seed, "clients"))
        await _await_agents(clients)
        calm = max(1, runs / RUNS_OF_A_CALM)
        yield clients, [Freezer(http, admin, stack.home, dice(seed, "freezer", one), calm) for one in range(FREEZERS)]


async def _await_agents(clients: Clients) -> None:
    while True:
        found = _AgentsSeen.model_validate(await clients.read(AGENT_KEY, "/api/v1/agents"))
        if {*AGENTS} <= {agent.name for agent in found.agents}:
            return
        await asyncio.sleep(PAUSE_S)


async def _sign_in(http: httpx.AsyncClient, name: str, password: str) -> str:
    answer = await http.post("/api/v1/sessions", json={"name": name, "password": password})
    answer.raise_for_status()
    return _SessionSeen.model_validate_json(answer.content).token


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
