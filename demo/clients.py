"""Client of Sayso's HTTP API for agents and reviewers, which survives restarts of the service.

Every write has an `Idempotency-Key`, so a request without a response can be repeated.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, JsonValue

from sayso.core.clock import monotonic_ms
from sayso.core.records.events import TrailEntry
from sayso.core.records.suspensions import RunStatus
from sayso.errors import SaysoError

PATIENCE_S = 60
"""How long the service may be unreachable. A restart after a crash takes a few seconds."""

WAIT_S = 20
TIMEOUT_S = WAIT_S + 10
RETRY_EVERY_S = 0.1
_UNAVAILABLE = frozenset({502, 503, 504})


class Refused(SaysoError):
    """The service refused a request."""


class _Response(BaseModel):
    """The fields read from a response. Others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RunSeen(_Response):
    """A run."""

    id: str
    status: RunStatus
    result: JsonValue = None
    error: str | None = None


class ToolSeen(_Response):
    """The call under review."""

    name: str
    args: dict[str, JsonValue]


class OutcomeSeen(_Response):
    """The outcome of an item."""

    verdict: str


class ItemSeen(_Response):
    """An item of a suspension."""

    item_id: str
    tool: ToolSeen
    digest: str
    outcome: OutcomeSeen | None


class SuspensionSeen(_Response):
    """A suspension with its items."""

    id: str
    items: tuple[ItemSeen, ...]


class _EventSeen(_Response):
    seq: int
    at: datetime
    type: str
    data: dict[str, Any]
    hash: str


class Client:
    """The API with one credential."""

    def __init__(self, http: httpx.AsyncClient, token: str | None = None) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def sign_in(self, name: str, password: str) -> "Client":
        """Return a client for a person."""
        session = await self._send("POST", "/api/v1/sessions", {"name": name, "password": password})
        return Client(self._http, str(json.loads(session)["token"]))

    async def start_run(self, agent: str, text: str, title: str, key: str) -> RunSeen:
        body = {"agent": agent, "input": text, "title": title}
        return RunSeen.model_validate_json(await self._send("POST", "/api/v1/runs", body, key))

    async def find_run(self, run_id: str) -> RunSeen:
        return RunSeen.model_validate_json(await self._send("GET", f"/api/v1/runs/{run_id}"))

    async def await_end(self, run_id: str) -> RunSeen:
        """Return the run once it has ended, by long polling."""
        give_up_at_ms = _start_patience()
        while True:
            run = RunSeen.model_validate_json(await self._send("GET", f"/api/v1/runs/{run_id}?wait={WAIT_S}s"))
            if run.status.ended:
                return run
            await _wait(give_up_at_ms, f"the run {run_id} is still {run.status}")

    async def follow(self, run_id: str) -> AsyncIterator[TrailEntry]:
        """Yield each event of the run once until it ends. A broken stream is resumed."""
        seq = 0
        give_up_at_ms = _start_patience()
        while True:
            try:
                async with self._stream(run_id, seq) as lines:
                    async for kind, data in _read_stream(lines):
                        if kind == "end":
                            return
                        entry = _read_event(data)
                        seq = entry.seq
                        yield entry
                        give_up_at_ms = _start_patience()
            except httpx.TransportError as error:
                await _wait(give_up_at_ms, error)

    async def find_suspension(self, suspension_id: str) -> SuspensionSeen:
        return SuspensionSeen.model_validate_json(await self._send("GET", f"/api/v1/suspensions/{suspension_id}"))

    async def read_timeline(self, run_id: str) -> list[dict[str, Any]]:
        """Return the first hundred entries of the run's timeline."""
        timeline: dict[str, Any] = json.loads(await self._send("GET", f"/api/v1/runs/{run_id}/timeline"))
        return list(timeline["entries"])

    async def decide(self, suspension_id: str, item: ItemSeen, decision: Mapping[str, JsonValue], key: str) -> None:
        """Decide an item, bound to the digest that was seen."""
        path = f"/api/v1/suspensions/{suspension_id}/items/{item.item_id}/decision"
        await self._send("POST", path, {**decision, "digest": item.digest}, key)

    async def await_agent(self, name: str) -> None:
        """Wait until a worker has registered the agent."""
        give_up_at_ms = _start_patience()
        while name not in {agent["name"] for agent in json.loads(await self._send("GET", "/api/v1/agents"))["agents"]}:
            await _wait(give_up_at_ms, f"no worker has registered the agent {name!r}")

    async def _send(
        self, method: str, path: str, body: Mapping[str, JsonValue] | None = None, key: str | None = None
    ) -> bytes:
        headers = {**self._headers, **({"Idempotency-Key": key} if key else {})}
        give_up_at_ms = _start_patience()
        while True:
            try:
                response = await self._http.request(method, path, json=body, headers=headers, timeout=TIMEOUT_S)
            except httpx.TransportError as error:
                await _wait(give_up_at_ms, error)
                continue
            if response.is_success:
                return response.content
            if response.status_code not in _UNAVAILABLE:
                raise Refused(f"{method} {path} returned {response.status_code}: {response.text}")
            await _wait(give_up_at_ms, response.text)

    @asynccontextmanager
    async def _stream(self, run_id: str, seq: int) -> AsyncIterator[AsyncIterator[str]]:
        path = f"/api/v1/runs/{run_id}/events/stream"
        headers = {**self._headers, "Last-Event-ID": str(seq)}
        async with self._http.stream("GET", path, headers=headers, timeout=TIMEOUT_S) as response:
            if response.is_success:
                yield response.aiter_lines()
            elif response.status_code in _UNAVAILABLE:
                raise httpx.ReadError(f"The service returned {response.status_code}.")
            else:
                raise Refused(f"GET {path} returned {response.status_code}.")


async def _read_stream(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """Yield the type and data of each server-sent event."""
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


def _start_patience() -> float:
    return monotonic_ms() + PATIENCE_S * 1000


async def _wait(give_up_at_ms: float, reason: object) -> None:
    """Wait before the next try. Raises `Refused` after the last one."""
    if monotonic_ms() >= give_up_at_ms:
        raise Refused(f"Gave up after {PATIENCE_S} s: {reason}.")
    await asyncio.sleep(RETRY_EVERY_S)
