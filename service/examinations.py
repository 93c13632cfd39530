"""Look at the parts of a running Sayso, and say of each whether it works and what to do where it does not."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sayso.clock import now_ms
from sayso.errors import SaysoError, Unavailable
from service.credentials import TENANT
from service.jobs import count_workers
from service.store.durability import check_durability
from service.wiring import Wiring

CLOCK_DRIFT_MS = 2_000
OVERDUE_MS = 5_000
"""A clock that beats ten times a second looks at nothing so late."""


@dataclass(frozen=True)
class Finding:
    """One part: whether it works, how it stands, and what to do."""

    part: str
    ok: bool
    told: str
    todo: str = ""


async def examine(wiring: Wiring) -> AsyncIterator[Finding]:
    """Yield a finding for each part that this process can see."""
    yield await _examine_durability(wiring)
    try:
        yield await _examine_time(wiring)
        yield await _examine_clock(wiring)
        yield await _examine_workers(wiring)
    except SaysoError as error:
        yield Finding("store", False, f"It could not be asked: {error.message}", "Start the store, or correct its URL.")
    yield _examine_rules(wiring)
    yield _examine_channels(wiring)


async def _examine_durability(wiring: Wiring) -> Finding:
    try:
        weakness = await check_durability(wiring.settings.store_url, allow_weak=True, wait_s=0)
    except Unavailable as error:
        return Finding("durability", False, error.message, "Start the store, or correct its URL.")
    if weakness is None:
        return Finding("durability", True, "The store keeps what it confirmed.")
    return Finding("durability", False, f"The store may forget: {weakness}.", "Set it up as docs/operations.md says.")


async def _examine_time(wiring: Wiring) -> Finding:
    drift_ms = now_ms() - await wiring.agenda.now_ms()
    told = f"The service and the store are {abs(drift_ms)} ms apart."
    todo = "Let both machines follow the same time server; deadlines follow the store's."
    return Finding("time", abs(drift_ms) <= CLOCK_DRIFT_MS, told, todo if abs(drift_ms) > CLOCK_DRIFT_MS else "")


async def _examine_clock(wiring: Wiring) -> Finding:
    due = await wiring.agenda.due(TENANT, await wiring.agenda.now_ms() - OVERDUE_MS, limit=1)
    if not due:
        return Finding("clock", True, "Nothing is overdue.")
    return Finding("clock", False, "Deadlines are overdue: no clock looks at them.", "Start `python -m workers.clock`.")


async def _examine_workers(wiring: Wiring) -> Finding:
    number = await asyncio.to_thread(count_workers, wiring.settings.store_url)
    if number:
        return Finding("workers", True, f"{number} running.")
    return Finding("workers", False, "No worker runs: nothing that is approved goes on.", "Start `python -m workers`.")


def _examine_rules(wiring: Wiring) -> Finding:
    wiring.rulebook.refresh()
    error = wiring.rulebook.error
    if error is None:
        return Finding("rules", True, f"Version {wiring.rulebook.policy.version}, as in the file.")
    return Finding("rules", False, f"The file is broken; the rules before hold: {error.message}", "Correct the file.")


def _examine_channels(wiring: Wiring) -> Finding:
    hook = "open" if wiring.settings.webhook_secret else "closed (SAYSO_WEBHOOK_SECRET is not set)"
    return Finding("channels", True, f"Pages at {wiring.settings.public_url}; the webhook for decisions is {hook}.")
