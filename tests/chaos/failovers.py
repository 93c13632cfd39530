"""Fail-overs under load: `make chaos FAILOVERS=200`, with REPLICAS=0 for none that confirm.

Two processes' parts serve clients that ask, approve, redeem and report; others try to redeem the same calls again. The
primary is killed or stopped, and a replica that may lag takes its place. An admin unfreezes what a loss froze.
"""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest, Report
from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import ResumeSpec
from sayso.core.records.tools import ToolCall
from sayso.errors import Frozen, SaysoError, Unavailable
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import UNLIMITED
from service.core.store.connection.formats import check_format
from service.core.wiring import Wiring
from tests.builders import REFUND, person, run_ref
from tests.chaos.workload.plans import seeded_random
from tests.servers import Address, replaced_server

_RULES = "version: 1\ndefault: request_approval\nrules: []\n"
_CLIENTS = 4
_PAUSE_S = 0.05
_POLL = ResumeSpec(mode="poll")
_CALL = ExternalCall(ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": 1}), REFUND)
_DONE = Report(success=True, output="done", at_ms=0)
Result = TypeVar("Result")


@dataclass
class Figures:
    """What the experiment saw: acknowledged decisions, how often each call ran, and losses by fail-over."""

    decided: list[str] = field(default_factory=list)
    ran: Counter[str] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    losing: int = 0
    noticed: int = 0
    failovers: int = 0

    @property
    def twice(self) -> list[str]:
        return [name for name, times in self.ran.items() if times > 1]

    def describe(self) -> str:
        twice = len(self.twice)
        return (
            f"{self.failovers} fail-overs, {len(self.decided)} acknowledged decisions, {len(self.lost)} lost in "
            f"{self.losing} fail-overs, of which {self.noticed} were noticed; {self.ran.total()} runs, {twice} twice."
        )


async def _insist(step: Callable[[], Awaitable[Result]]) -> Result:
    """Take a step, again while the store is unavailable or frozen."""
    while True:
        try:
            return await step()
        except (Unavailable, Frozen):
            await asyncio.sleep(_PAUSE_S)


async def _work(wirings: list[Wiring], figures: Figures, name: str, over: asyncio.Event) -> None:
    """Take one call after the other through, over both processes in turn."""
    number = 0
    while not over.is_set():
        number += 1
        with suppress(SaysoError):  # the run is gone with the window, or cancelled
            await _take(wirings[number % 2], wirings[(number + 1) % 2], figures, f"{name}-{number}")


async def _take(mine: Wiring, other: Wiring, figures: Figures, key: str) -> None:
    """Ask, approve, redeem and report; ask to redeem again over the other process."""
    desk, ref = mine.desk, run_ref()
    asked = (await _insist(lambda: desk.suspend(ref, [_CALL], _POLL, key=key))).record
    yes = DecisionRequest(action="approve", digest=asked.items[0].digest)
    await _insist(lambda: desk.decide(asked.id, "i1", yes, person("anna"), key=key))
    figures.decided.append(asked.id)
    await _run(desk.client_redeem, figures, asked.id, key)
    await _run(other.desk.client_redeem, figures, asked.id, f"{key} again")
    await _insist(lambda: desk.conclude(asked.id, "i1", key, _DONE))


async def _run(redeem: Callable[..., Awaitable[object]], figures: Figures, suspension_id: str, key: str) -> None:
    """Run the call if its permit is granted."""
    with suppress(SaysoError):
        await _insist(lambda: redeem(suspension_id, "i1", key, Revocations()))
        figures.ran[suspension_id] += 1


async def _unfreeze(wiring: Wiring) -> bool:
    """Unfreeze what a loss froze; return whether there was one."""
    lost = [freeze for freeze in await wiring.freezes.in_force(fresh=True) if freeze.lost is not None]
    for freeze in lost:
        await wiring.freezes.unfreeze(freeze.id, person("root"), checked="The calls of the window.")
    return bool(lost)


async def _find_lost(wiring: Wiring, figures: Figures, since: int) -> set[str]:
    """Return the acknowledged decisions that the store no longer has."""
    ids = figures.decided[since:]
    records = {record.id: record for record in await wiring.desk.suspensions.read_many(ids)}
    return {name for name in ids if name not in records or records[name].items[0].outcome is None}


async def _fail_over(address: Address, wirings: list[Wiring], figures: Figures, rng: random.Random) -> None:
    """Replace the primary once, then count what is lost and whether it was noticed."""
    # A wait that began without a replica hears of it with its next report, a second later.
    await asyncio.sleep(rng.uniform(0.3, 0.8) + 2 * min(1, wirings[0].settings.replicas))
    before = max(0, len(figures.decided) - 1_000)
    if rng.random() < 0.7:
        await asyncio.to_thread(address.part_replica)
        await asyncio.sleep(rng.uniform(0.05, 0.3))
    by = rng.choice((signal.SIGKILL, signal.SIGSTOP))
    await asyncio.to_thread(address.fail_over, by)
    until = len(figures.decided)
    for wiring in wirings:
        await _insist(lambda wiring=wiring: _settle(wiring))  # type: ignore[misc]
    await asyncio.to_thread(address.add_replica)  # without one, nothing is confirmed
    for wiring in wirings:
        await wiring.recovery.finish()
    lost = (await _insist(lambda: _find_lost(wirings[0], figures, before))) & set(figures.decided[:until])
    noticed = await _insist(lambda: _unfreeze(wirings[0]))
    figures.losing += bool(lost - figures.lost)
    figures.noticed += bool(lost - figures.lost) and noticed
    figures.lost |= lost
    figures.failovers += 1


async def _settle(wiring: Wiring) -> None:
    await wiring.store.counts.compare()
    if not wiring.store.counts.settled:
        raise Unavailable


async def run_failovers(folder: Path, failovers: int, replicas: int, seed: int) -> Figures:
    """Run the experiment in a folder; return what it saw."""
    figures, rng, over = Figures(), seeded_random(seed, "fail-overs"), asyncio.Event()
    policy = folder / "policy.yaml"
    policy.write_text(_RULES)
    limits = {name.removeprefix("SAYSO_").lower(): value for name, value in UNLIMITED.items()}
    async with AsyncExitStack() as stack:
        address = stack.enter_context(replaced_server(folder))
        await check_format(address.url)
        shared = {"redis_url": address.url, "policy": policy, "replicas": replicas, **limits}
        each = [Settings.model_validate({**shared, "home": folder / name}) for name in ("first", "second")]
        wirings = [await stack.enter_async_context(assemble(settings)) for settings in each]
        names = [f"client-{number}" for number in range(_CLIENTS)]
        clients = asyncio.gather(*(_work(wirings, figures, name, over) for name in names))
        await asyncio.to_thread(address.add_replica)
        for _ in range(failovers):
            await _fail_over(address, wirings, figures, rng)
        over.set()
        while not clients.done():  # a process may notice a loss late, and freeze once more
            await _insist(lambda: _unfreeze(wirings[0]))
            await asyncio.sleep(_PAUSE_S)
        await clients
    return figures
