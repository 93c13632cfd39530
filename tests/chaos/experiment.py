"""One chaos experiment: a whole Sayso of real processes, runs, kills, freezes and cards; and the evidence."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict

from demo.stacks import Stack, running_stack
from sayso.core.clock import monotonic_ms, new_secret
from service.core.settings.limits import UNLIMITED
from tests.chaos.evidence.client_log import ClientLog
from tests.chaos.evidence.trails import save_trails
from tests.chaos.workload.agents import PATHS
from tests.chaos.workload.clients import PAUSE_S, Clients
from tests.chaos.workload.driver import AT_ONCE, Driver
from tests.chaos.workload.freezer import Freezer
from tests.chaos.workload.killer import Killer
from tests.chaos.workload.phones import Phones
from tests.chaos.workload.plans import AGENT_KEY, AGENTS, REVIEWERS, seeded_random
from tests.chaos.workload.provider import Provider, serving_provider, write_channels
from tests.chaos.workload.settling import settle

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
"""Short leases and drain windows make the consequences of a kill frequent."""

FREEZERS = 2
"""Number of admins who freeze and unfreeze; their freezes overlap."""

RUNS_PER_PAUSE_FACTOR = 2_000
"""Above this number of runs, admins pause longer, so that an experiment has a few hundred freezes at most."""

_AHEAD = 2
"""How far runs may be ahead of kills, and kills ahead of runs, in kills."""


@dataclass(frozen=True)
class ExperimentResult:
    """The figures of a finished experiment."""

    runs: int
    killed: Counter[str]
    frozen: int
    took_s: float


class _AgentView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str


class _AgentsView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    agents: tuple[_AgentView, ...]


class _SessionView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    token: str


def run_experiment(home: Path, runs: int, kills: int, seed: int) -> ExperimentResult:
    """Run the experiment in a Sayso of its own in `home`, which then holds the evidence."""
    with serving_provider(home, seed) as provider:
        settings = {**SETTINGS, "SAYSO_CHANNELS": str(write_channels(home, provider))}
        with running_stack(home, settings) as stack:
            return asyncio.run(_run(stack, provider, runs, kills, seed))


async def _run(stack: Stack, provider: Provider, runs: int, kills: int, seed: int) -> ExperimentResult:
    log = ClientLog(stack.home)
    began_ms = monotonic_ms()
    phones = Phones(provider)
    async with _clients(stack, log, phones, seed, runs) as (clients, freezers):
        provider.fail_by_seed()
        runs_a_kill = runs / max(1, kills)
        killer = Killer(stack, seed, kills, lambda done: driver.started + _AHEAD * runs_a_kill >= done * runs_a_kill)
        driver = Driver(
            clients, phones, seed, runs, lambda number: number <= (killer.done + _AHEAD) * runs_a_kill or not kills
        )
        over = asyncio.Event()
        freezing = asyncio.gather(provider.fail_at_times(over), *(freezer.run(over) for freezer in freezers))
        async with asyncio.TaskGroup() as group:
            group.create_task(killer.run())
            group.create_task(driver.drive())
        over.set()
        await freezing
        await settle(provider, clients)
        took_s = (monotonic_ms() - began_ms) / 1000
        await save_trails(clients, driver.run_ids, stack.home)
    log.close()
    return ExperimentResult(runs, killer.killed, sum(freezer.frozen for freezer in freezers), took_s)


@asynccontextmanager
async def _clients(
    stack: Stack, log: ClientLog, phones: Phones, seed: int, runs: int
) -> AsyncIterator[tuple[Clients, list[Freezer]]]:
    """Sign in all clients, link the chats, and wait until the agents are registered."""
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
            tokens[name] = await _enter(http, name, password)
        await phones.link(http, tokens)
        clients = Clients(http, log, tokens, seeded_random(seed, "clients"))
        await _await_agents(clients)
        pause_factor = max(1, runs / RUNS_PER_PAUSE_FACTOR)
        yield (
            clients,
            [
                Freezer(http, admin, stack.home, seeded_random(seed, "freezer", one), pause_factor)
                for one in range(FREEZERS)
            ],
        )


async def _await_agents(clients: Clients) -> None:
    while True:
        found = _AgentsView.model_validate(await clients.read(AGENT_KEY, "/api/v1/agents"))
        if {*AGENTS} <= {agent.name for agent in found.agents}:
            return
        await asyncio.sleep(PAUSE_S)


async def _enter(http: httpx.AsyncClient, name: str, given: str) -> str:
    """Sign in with a password that an admin set, choose another, and return the token of the session."""
    headers, passwords = _bearer(await _sign_in(http, name, given)), {"current": given, "password": new_secret()}
    chosen = await http.post("/api/v1/account/password", json=passwords, headers=headers)
    chosen.raise_for_status()
    return _SessionView.model_validate_json(chosen.content).token


async def _sign_in(http: httpx.AsyncClient, name: str, password: str) -> str:
    answer = await http.post("/api/v1/sessions", json={"name": name, "password": password})
    answer.raise_for_status()
    return _SessionView.model_validate_json(answer.content).token


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
