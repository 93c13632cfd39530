"""Freeze a tool, an agent or everything now and then while a storm passes, and lift that again: careful admins."""

import asyncio
from pathlib import Path
from random import Random

import httpx
from pydantic import BaseModel, ConfigDict

from sayso.clock import now_ms
from tests.chaos.freezes import FreezeLine, write_freeze
from tests.chaos.logs import read_moment
from tests.chaos.plans import AGENTS, TOOLS

SCOPES = ("all", *(f"agent:{name}" for name in AGENTS), *(f"tool:{name}" for name in TOOLS))
_WEIGHTS = (2, *(3 for _ in AGENTS), *(2 for _ in TOOLS))
_PAUSE_S = (1.0, 5.0)
_FROZEN_S = (0.2, 3.0)
_LONG_S = 7.0
"""Long enough that also a worker which was stopped in between would show what it starts."""

_LONG = 0.1
_AGAIN_S = 0.2
_TIMEOUT_S = 15


class _FreezeSeen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    scope: str
    at: str
    unfrozen_at: str | None


class Freezer:
    """One admin, who freezes and lifts until the storm is over; `frozen` counts how often.

    The calmer, the longer the pauses: lifted freezes are kept for months, and real admins make a handful.
    """

    def __init__(self, http: httpx.AsyncClient, token: str, home: Path, throw: Random, calm: float = 1) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}"}
        self._home = home
        self._throw = throw
        self._calm = calm
        self.frozen = 0

    async def run(self, over: asyncio.Event) -> None:
        """Freeze one scope after the other; what is frozen when the storm is over is still lifted."""
        while not over.is_set():
            await _pause(over, self._throw.uniform(*_PAUSE_S) * self._calm)
            scope = self._throw.choices(SCOPES, _WEIGHTS)[0]
            for_s = _LONG_S if self._throw.random() < _LONG else self._throw.uniform(*_FROZEN_S)
            if not over.is_set():
                await self._freeze(scope, for_s, over)

    async def _freeze(self, scope: str, for_s: float, over: asyncio.Event) -> None:
        made = await self._post("/api/v1/freezes", {"scope": scope, "reason": "The storm", "confirm": True})
        told_at_ms = now_ms()
        await _pause(over, for_s)
        unfrozen = await self._post(f"/api/v1/freezes/{made.id}/lift", {})
        line = FreezeLine(
            scope=made.scope,
            at_ms=read_moment(made.at),
            told_at_ms=told_at_ms,
            unfrozen_at_ms=read_moment(str(unfrozen.unfrozen_at)),
        )
        write_freeze(self._home, line)
        self.frozen += 1

    async def _post(self, path: str, body: dict[str, str | bool]) -> _FreezeSeen:
        """Send it until it is done: freezing twice is freezing once, and so is lifting."""
        while True:
            try:
                answer = await self._http.post(path, json=body, headers=self._headers, timeout=_TIMEOUT_S)
                if answer.is_success:
                    return _FreezeSeen.model_validate_json(answer.content)
                if answer.status_code < 500:
                    answer.raise_for_status()
            except httpx.TransportError:
                pass
            await asyncio.sleep(_AGAIN_S)


async def _pause(over: asyncio.Event, for_s: float) -> None:
    try:
        await asyncio.wait_for(over.wait(), for_s)
    except TimeoutError:
        return
