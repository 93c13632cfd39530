"""Speak the API through any outage, and log every single attempt: a storm's requests are its evidence."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, cast

import httpx
from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.clock import monotonic_ms, now_ms
from sayso.errors import SaysoError
from tests.chaos.logs import ClientLog, Said, shorten

TIMEOUT_S = 15
PAUSE_S = 0.15
PATIENCE_S = 120
HANGS_UP = 0.05
_AWAY = frozenset({429, 502, 503, 504})


class NoAnswer(SaysoError):
    """The service did not answer for so long that the storm gave up; its log says why."""


@dataclass(frozen=True)
class Errand:
    """One request to be made until it is answered: what it is about, in whose name, under which key."""

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
    """Everybody who talks to one Sayso during a storm, by name."""

    def __init__(self, http: httpx.AsyncClient, log: ClientLog, tokens: Mapping[str, str], throw: Random) -> None:
        self._http = http
        self._throw = throw
        self._log = log
        self._tokens = dict(tokens)

    async def run(self, errand: Errand) -> Said:
        """Send the same request until there is a definite answer, as any careful client does; return that."""
        give_up_at_ms = monotonic_ms() + PATIENCE_S * 1000
        while True:
            said = await self._try(errand)
            if said.status is not None and said.status not in _AWAY:
                return said
            if monotonic_ms() > give_up_at_ms:
                raise NoAnswer(f"{errand.path} was not answered within {PATIENCE_S} s: {said.status} {said.answer}")
            await asyncio.sleep(PAUSE_S)

    async def read(self, actor: str, path: str, wait_s: int = 0) -> JsonValue:
        """Return what there is at a path; reads are repeated and not logged. Raises `NoAnswer`."""
        give_up_at_ms = monotonic_ms() + PATIENCE_S * 1000
        while True:
            try:
                answer = await self._http.get(path, headers=self._headers(actor), timeout=TIMEOUT_S + wait_s)
                if answer.is_success:
                    return cast(JsonValue, answer.json())
                told = f"{answer.status_code} {answer.text}"
                if answer.status_code not in _AWAY:
                    raise NoAnswer(f"GET {path} was answered with {told}")
            except httpx.TransportError as error:
                told = repr(error)
            if monotonic_ms() > give_up_at_ms:
                raise NoAnswer(f"GET {path} was not answered within {PATIENCE_S} s: {told}")
            await asyncio.sleep(PAUSE_S)

    def note(self, said: Said) -> None:
        """Log something that a client saw."""
        self._log.write(said)

    async def _try(self, errand: Errand) -> Said:
        at_ms = now_ms()
        status, answer = await self._post(errand)
        if status is None and answer is None:
            return Said(kind=errand.kind, run=errand.run, at_ms=at_ms, done_ms=at_ms, actor=errand.actor, status=None)
        said = Said(
            kind=errand.kind,
            run=errand.run,
            at_ms=at_ms,
            done_ms=now_ms(),
            actor=errand.actor,
            key=errand.key,
            run_id=errand.run_id,
            suspension_id=errand.suspension_id,
            item_id=errand.item_id,
            body=errand.body,
            status=status,
            answer=answer,
        )
        self._log.write(said)
        return said

    async def _post(self, errand: Errand) -> tuple[int | None, JsonValue]:
        """Return status and answer; no status for a lost reply, and nothing at all when nothing could be sent."""
        headers = {**self._headers(errand.actor), "Idempotency-Key": errand.key}
        timeout = httpx.Timeout(TIMEOUT_S, read=self._patience_s())
        try:
            answer = await self._http.post(errand.path, json=errand.body, headers=headers, timeout=timeout)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None, None
        except httpx.TransportError as error:
            return None, repr(error)
        return answer.status_code, shorten(answer.text)

    def _patience_s(self) -> float:
        """Now and then a client hangs up so soon that it cannot know what became of its request."""
        return self._throw.uniform(0.002, 0.06) if self._throw.random() < HANGS_UP else TIMEOUT_S

    def _headers(self, actor: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._tokens[actor]}"}
