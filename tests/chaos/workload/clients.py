"""API clients that survive any outage and log every attempt; the log is evidence."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, cast

import httpx
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms, now_ms
from sayso.errors import SaysoError
from tests.chaos.evidence.client_log import ClientLog, Exchange, shorten

TIMEOUT_S = 15
PAUSE_S = 0.15
PATIENCE_S = 120
HANG_UP_SHARE = 0.05
_UNAVAILABLE = frozenset({429, 502, 503, 504})


class NoResponse(SaysoError):
    """The service did not respond in time; its log says why."""


@dataclass(frozen=True)
class Request:
    """One request, sent until it is answered."""

    kind: Literal["start", "decide", "cancel"]
    run: int
    actor: str
    path: str
    key: str
    body: JsonObject
    run_id: str | None = None
    suspension_id: str | None = None
    item_id: str | None = None


class Clients:
    """All clients of one Sayso, by name."""

    def __init__(self, http: httpx.AsyncClient, log: ClientLog, tokens: Mapping[str, str], rng: Random) -> None:
        self._http = http
        self._rng = rng
        self._log = log
        self._tokens = dict(tokens)

    async def send(self, request: Request) -> Exchange:
        """Send the request until there is a definite answer. Raises `NoResponse`."""
        give_up_at_ms = monotonic_ms() + PATIENCE_S * 1000
        while True:
            exchange = await self._try(request)
            if exchange.status is not None and exchange.status not in _UNAVAILABLE:
                return exchange
            if monotonic_ms() > give_up_at_ms:
                raise NoResponse(
                    f"{request.path} was not answered within {PATIENCE_S} s: {exchange.status} {exchange.answer}"
                )
            await asyncio.sleep(PAUSE_S)

    async def read(self, actor: str, path: str, wait_s: int = 0) -> JsonValue:
        """Return the document at a path. Reads are repeated but not logged. Raises `NoResponse`."""
        give_up_at_ms = monotonic_ms() + PATIENCE_S * 1000
        while True:
            try:
                answer = await self._http.get(path, headers=self._headers(actor), timeout=TIMEOUT_S + wait_s)
                if answer.is_success:
                    return cast(JsonValue, answer.json())
                failure = f"{answer.status_code} {answer.text}"
                if answer.status_code not in _UNAVAILABLE:
                    raise NoResponse(f"GET {path} was answered with {failure}")
            except httpx.TransportError as error:
                failure = repr(error)
            if monotonic_ms() > give_up_at_ms:
                raise NoResponse(f"GET {path} was not answered within {PATIENCE_S} s: {failure}")
            await asyncio.sleep(PAUSE_S)

    def note(self, exchange: Exchange) -> None:
        """Log a view that a client read."""
        self._log.write(exchange)

    async def _try(self, request: Request) -> Exchange:
        at_ms = now_ms()
        status, answer = await self._post(request)
        if status is None and answer is None:
            return Exchange(
                kind=request.kind, run=request.run, at_ms=at_ms, done_ms=at_ms, actor=request.actor, status=None
            )
        exchange = Exchange(
            kind=request.kind,
            run=request.run,
            at_ms=at_ms,
            done_ms=now_ms(),
            actor=request.actor,
            key=request.key,
            run_id=request.run_id,
            suspension_id=request.suspension_id,
            item_id=request.item_id,
            body=request.body,
            status=status,
            answer=answer,
        )
        self._log.write(exchange)
        return exchange

    async def _post(self, request: Request) -> tuple[int | None, JsonValue]:
        """Return status and answer; without a status the reply was lost, without both nothing was sent."""
        headers = {**self._headers(request.actor), "Idempotency-Key": request.key}
        timeout = httpx.Timeout(TIMEOUT_S, read=self._read_timeout_s())
        try:
            answer = await self._http.post(request.path, json=request.body, headers=headers, timeout=timeout)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None, None
        except httpx.TransportError as error:
            return None, repr(error)
        return answer.status_code, shorten(answer.text)

    def _read_timeout_s(self) -> float:
        """Return the read timeout; some clients hang up too soon to receive the reply."""
        return self._rng.uniform(0.002, 0.06) if self._rng.random() < HANG_UP_SHARE else TIMEOUT_S

    def _headers(self, actor: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._tokens[actor]}"}
