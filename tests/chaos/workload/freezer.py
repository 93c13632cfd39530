"""Admins who freeze and unfreeze a tool, an agent or everything during an experiment."""

import asyncio
from pathlib import Path
from random import Random

import httpx
from pydantic import BaseModel, ConfigDict

from sayso.core.clock import now_ms
from tests.chaos.evidence.client_log import parse_ms
from tests.chaos.evidence.freezes import FreezeLine, write_freeze
from tests.chaos.workload.plans import AGENTS, TOOLS

SCOPES = ("all", *(f"agent:{name}" for name in AGENTS), *(f"tool:{name}" for name in TOOLS))
_WEIGHTS = (2, *(3 for _ in AGENTS), *(2 for _ in TOOLS))
_INTERVAL_S = (1.0, 5.0)
_FROZEN_S = (0.2, 3.0)
_LONG_S = 7.0
"""Long enough to catch a call that a stopped worker starts when it continues."""

_LONG = 0.1
_RETRY_S = 0.2
_TIMEOUT_S = 15


class _FreezeView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    scope: str
    at: str
    unfrozen_at: str | None


class Freezer:
    """One admin, who freezes and unfreezes until the experiment ends; `frozen` counts the freezes.

    Long experiments raise `pause_factor`, because past freezes are kept for months.
    """

    def __init__(self, http: httpx.AsyncClient, token: str, home: Path, rng: Random, pause_factor: float = 1) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}"}
        self._home = home
        self._rng = rng
        self._pause_factor = pause_factor
        self.frozen = 0

    async def run(self, over: asyncio.Event) -> None:
        """Freeze one scope after the other. Return once the last one is unfrozen."""
        while not over.is_set():
            await pause(over, self._rng.uniform(*_INTERVAL_S) * self._pause_factor)
            scope = self._rng.choices(SCOPES, _WEIGHTS)[0]
            duration_s = _LONG_S if self._rng.random() < _LONG else self._rng.uniform(*_FROZEN_S)
            if not over.is_set():
                await self._freeze(scope, duration_s, over)

    async def _freeze(self, scope: str, duration_s: float, over: asyncio.Event) -> None:
        freeze = await self._post("/api/v1/freezes", {"scope": scope, "reason": "Chaos experiment", "confirm": True})
        acknowledged_at_ms = now_ms()
        await pause(over, duration_s)
        unfrozen = await self._post(f"/api/v1/freezes/{freeze.id}/unfreeze", {})
        line = FreezeLine(
            scope=freeze.scope,
            at_ms=parse_ms(freeze.at),
            acknowledged_at_ms=acknowledged_at_ms,
            unfrozen_at_ms=parse_ms(str(unfrozen.unfrozen_at)),
        )
        write_freeze(self._home, line)
        self.frozen += 1

    async def _post(self, path: str, body: dict[str, str | bool]) -> _FreezeView:
        """Send the request until it succeeds; freezing and unfreezing are idempotent."""
        while True:
            try:
                answer = await self._http.post(path, json=body, headers=self._headers, timeout=_TIMEOUT_S)
                if answer.is_success:
                    return _FreezeView.model_validate_json(answer.content)
                if answer.status_code < 500:
                    answer.raise_for_status()
            except httpx.TransportError:
                pass
            await asyncio.sleep(_RETRY_S)


async def pause(over: asyncio.Event, duration_s: float) -> None:
    """Wait for a time, or until the experiment ends."""
    try:
        await asyncio.wait_for(over.wait(), duration_s)
    except TimeoutError:
        return
