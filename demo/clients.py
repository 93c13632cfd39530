"""Speak Sayso's HTTP API as an agent or a reviewer does, through any restart of the service.

Every write carries an `Idempotency-Key`, so a request whose answer was lost is simply sent again.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, JsonValue

from sayso.clock import monotonic_ms
from sayso.errors import SaysoError
from sayso.records.events import TrailEntry
from sayso.records.suspensions import RunStatus

PATIENCE_S = 60
"""How long the service may be away; a restart after a crash takes a few seconds."""

WAIT_S = 20
TIMEOUT_S = WAIT_S + 10
PAUSE_S = 0.1
_AWAY = frozenset({502, 503, 504})


class Refused(SaysoError):
    """The service refused a request."""


class _Answer(BaseModel):
    """What is read of an answer; the rest of it is none of our business."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RunSeen(_Answer):
    """A run as it stands."""

    id: str
    status: RunStatus
    result: JsonValue = None
    error: str | None = None


class ToolSeen(_Answer):
    """The call that is asked about."""

    name: str
    args: dict[str, JsonValue]


class OutcomeSeen(_Answer):
    """How an item ended."""

    verdict: str


class ItemSeen(_Answer):
    """One thing that is asked."""

    item_id: str
    tool: ToolSeen
    digest: str
    outcome: OutcomeSeen | None


class SuspensionSeen(_Answer):
    """A pause of a run, with what is asked in it."""

    id: str
    items: tuple[ItemSeen, ...]


class _SessionSeen(_Answer):
    token: str


class _AgentSeen(_Answer):
    name: str


class _AgentsSeen(_Answer):
    agents: tuple[_AgentSeen, ...]


class _EventSeen(_Answer):
    seq: int
    at: datetime
    type: str
    data: dict[str, Any]
    hash: str


class Client:
    """The API as one credential sees it."""

    def __init__(self, http: httpx.AsyncClient, token: str | None = None) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def sign_in(self, name: str, password: str) -> "Client":
        """Return the API as a person sees it."""
        opened = await self._send("POST", "/api/v1/sessions", {"name": name, "password": password})
        return Client(self._http, _SessionSeen.model_validate_json(opened).token)

    async def start_run(self, agent: str, text: str, title: str, key: str) -> RunSeen:
        """Ask an agent for something."""
        body = {"agent": agent, "input": text, "title": title}
        return RunSeen.model_validate_json(await self._send("POST", "/api/v1/runs", body, key))

    async def find_run(self, run_id: str) -> RunSeen:
        """Return a run as it stands."""
        return RunSeen.model_validate_json(await self._send("GET", f"/api/v1/runs/{run_id}"))

    async def await_end(self, run_id: str) -> RunSeen:
        """Return the run when it has ended, by long polls."""
        give_up_at_ms = _end_of_patience()
        while True:
            run = RunSeen.model_validate_json(await self._send("GET", f"/api/v1/runs/{run_id}?wait={WAIT_S}s"))
            if run.status.ended:
                return run
            await _pause(give_up_at_ms, f"the run {run_id} is still {run.status}")

    async def follow(self, run_id: str) -> AsyncIterator[TrailEntry]:
        """Yield the run's events as they happen, each once, until it has ended; a broken stream is taken up again."""
        seq = 0
        give_up_at_ms = _end_of_patience()
        while True:
            try:
                async with self._stream(run_id, seq) as lines:
                    async for kind, data in _read_stream(lines):
                        if kind == "end":
                            return
                        entry = _read_event(data)
                        seq = entry.seq
                        yield entry
                        give_up_at_ms = _end_of_patience()
            except httpx.TransportError as error:
                await _pause(give_up_at_ms, error)

    async def find_suspension(self, suspension_id: str) -> SuspensionSeen:
        """Return a pause as it stands."""
        return SuspensionSeen.model_validate_json(await self._send("GET", f"/api/v1/suspensions/{suspension_id}"))

    async def read_timeline(self, run_id: str) -> list[dict[str, Any]]:
        """Return the first hundred moments of everything that is known of a run."""
        found: dict[str, Any] = json.loads(await self._send("GET", f"/api/v1/runs/{run_id}/timeline"))
        return list(found["entries"])

    async def decide(self, suspension_id: str, item: ItemSeen, word: Mapping[str, JsonValue], key: str) -> None:
        """Give a word on an item, bound to exactly what was seen."""
        path = f"/api/v1/suspensions/{suspension_id}/items/{item.item_id}/decision"
        await self._send("POST", path, {**word, "digest": item.digest}, key)

    async def await_agent(self, name: str) -> None:
        """Wait until a worker has registered the agent."""
        give_up_at_ms = _end_of_patience()
        while name not in (agent.name for agent in await self._find_agents()):
            await _pause(give_up_at_ms, f"no worker has registered the agent {name!r}")

    async def _find_agents(self) -> tuple[_AgentSeen, ...]:
        return _AgentsSeen.model_validate_json(await self._send("GET", "/api/v1/agents")).agents

    async def _send(
        self, method: str, path: str, body: Mapping[str, JsonValue] | None = None, key: str | None = None
    ) -> bytes:
        headers = {**self._headers, **({"Idempotency-Key": key} if key else {})}
        give_up_at_ms = _end_of_patience()
        while True:
            try:
                answer = await self._http.request(method, path, json=body, headers=headers, timeout=TIMEOUT_S)
            except httpx.TransportError as error:
                await _pause(give_up_at_ms, error)
                continue
            if answer.is_success:
                return answer.content
            if answer.status_code not in _AWAY:
                raise Refused(f"{method} {path} was answered with {answer.status_code}: {answer.text}")
            await _pause(give_up_at_ms, answer.text)

    @asynccontextmanager
    async def _stream(self, run_id: str, seq: int) -> AsyncIterator[AsyncIterator[str]]:
        path = f"/api/v1/runs/{run_id}/events/stream"
        headers = {**self._headers, "Last-Event-ID": str(seq)}
        async with self._http.stream("GET", path, headers=headers, timeout=TIMEOUT_S) as answer:
            if answer.is_success:
                yield answer.aiter_lines()
            elif answer.status_code in _AWAY:
                raise httpx.ReadError(f"The service answered {answer.status_code}.")
            else:
                raise Refused(f"GET {path} was answered with {answer.status_code}.")


async def _read_stream(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """Yield kind and data of each server-sent event."""
    kind = data = ""
    async for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            kind = value
        elif field == "data":
            data += value
        elif not line and kind:
            yield kind, data
            kind = data = ""


def _read_event(raw: str) -> TrailEntry:
    seen = _EventSeen.model_validate_json(raw)
    at_ms = round(seen.at.timestamp() * 1000)
    return TrailEntry(seq=seen.seq, at_ms=at_ms, type=seen.type, data=seen.data, hash=seen.hash)


def _end_of_patience() -> float:
    return monotonic_ms() + PATIENCE_S * 1000


async def _pause(give_up_at_ms: float, why: object) -> None:
    """Let a moment pass before the next try; raises `Refused` when there were enough of them."""
    if monotonic_ms() >= give_up_at_ms:
        raise Refused(f"After {PATIENCE_S} s of trying: {why}.")
    await asyncio.sleep(PAUSE_S)
