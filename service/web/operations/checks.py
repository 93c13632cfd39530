"""The doctor's findings for an open page: checked again once they are some seconds old."""

import asyncio
from dataclasses import dataclass

from fastapi import Request

from sayso.core.clock import now_ms
from service.channels.table import Channels
from service.operations.diagnostics import Finding, diagnose
from service.web.sessions import wiring_of
from service.wiring import Wiring

KEPT_MS = 5_000
"""The age, ms, up to which findings are shown again: every change refreshes the open pages."""


@dataclass(frozen=True)
class Checked:
    """All findings of a tenant, and when the check began."""

    findings: tuple[Finding, ...]
    at_ms: int


class Checks:
    """The latest findings of this process. One check at a time serves all visitors."""

    def __init__(self) -> None:
        self._checked: dict[str, Checked] = {}
        self._lock = asyncio.Lock()

    async def find(self, wiring: Wiring, kinds: dict[str, str], *, fresh: bool = False) -> Checked:
        """Return the findings as of some seconds ago or, with `fresh`, as of now."""
        async with self._lock:
            known, at_ms = self._checked.get(wiring.tenant), now_ms()
            if fresh or known is None or not 0 <= at_ms - known.at_ms < KEPT_MS:
                known = Checked(tuple([finding async for finding in diagnose(wiring, kinds)]), at_ms)
                self._checked[wiring.tenant] = known
            return known


async def find_checked(request: Request, *, fresh: bool = False) -> Checked:
    """Return the findings for the visitor's tenant."""
    channels: Channels = request.app.state.channels
    checks: Checks = request.app.state.checks
    return await checks.find(
        wiring_of(request), {name: channel.kind for name, channel in channels.by_name.items()}, fresh=fresh
    )
