"""Begin a run in the agent's own process: up to its first calls, which are asked of Sayso; a worker does the rest."""

import base64
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, JsonValue

from sayso.canonical import parse_json
from sayso.clock import new_id
from sayso.decisions import JsonObject
from sayso.dialects.fits import MOST_AT_ONCE, fit_events
from sayso.dialects.tables import Dialect
from sayso.errors import SaysoError, Unavailable
from sayso.frameworks import Asked, Done, FrameworkAgent, open_gate
from sayso.states import write_state

log = logging.getLogger("sayso")

_TRIES = 3
_TIMEOUT_S = 30


class Refused(SaysoError):
    """Sayso did not take what was asked; see the message."""


class Suspended(BaseModel):
    """The run waits at Sayso. Whoever began it may end: a worker takes it up when everything is decided."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    suspension_id: str
    status: str


@dataclass(frozen=True)
class Sayso:
    """Where Sayso is reached, and the agent's key."""

    url: str
    key: str

    async def ask(self, body: JsonObject) -> Suspended:
        """Put calls before Sayso; a request whose answer was lost is sent again and counts once."""
        headers = {**self._headers, "Idempotency-Key": new_id("ask")}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=_TIMEOUT_S) as http:
            for _ in range(_TRIES):
                try:
                    answer = await http.post("/api/v1/suspensions", json=body)
                except httpx.TransportError:
                    continue
                if not answer.is_success:
                    raise Refused(_tell(answer), status=answer.status_code)
                found: Any = answer.json()
                return Suspended(run_id=found["run"]["id"], suspension_id=found["id"], status=found["status"])
        raise Unavailable(f"Sayso at {self.url} cannot be reached. Start it, or correct its address.")

    async def tell(self, run_id: str, framework: str, told: Sequence[JsonObject]) -> None:
        """Tell what was said up to there; sent again it counts once. The run waits all the same where it fails."""
        events = [{"seq": seq, "event": event} for seq, event in enumerate(fit_events(told), start=1)]
        if not events or framework not in set(Dialect):
            return
        body = {"dialect": framework, "source": framework, "events": events[:MOST_AT_ONCE]}
        async with httpx.AsyncClient(base_url=self.url, headers=self._headers, timeout=_TIMEOUT_S) as http:
            why = "it cannot be reached"
            for _ in range(_TRIES):
                try:
                    answer = await http.post(f"/api/v1/runs/{run_id}/events", json=body)
                except httpx.TransportError:
                    continue
                if answer.is_success:
                    return
                why = _tell(answer)
                break
        log.warning("Sayso was not told what the run said before it waited: %s", why)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


async def start(agent: FrameworkAgent, text: str, sayso: Sayso, title: str = "") -> Suspended | JsonValue:
    """Run the agent up to its first calls and ask for them; without any, return what it came to.

    Raises `InvalidJson`, naming the key, for a state that is not JSON: then nothing was asked.
    """
    with open_gate(None):
        reached = await agent.framework.begin(text)
    if isinstance(reached, Done):
        return reached.result
    waiting = await sayso.ask(_write(agent, reached, title or " ".join(text.split())[:80]))
    await sayso.tell(waiting.run_id, agent.framework.origin.framework, reached.told)
    return waiting


def _write(agent: FrameworkAgent, asked: Asked, title: str) -> JsonObject:
    origin = agent.manifest().origin
    return {
        "agent": agent.name,
        "title": title,
        "calls": [
            {"tool": one.name, "args": parse_json(one.args_json.strip() or "{}"), "call_id": one.call_id}
            for one in asked.calls
        ],
        "on_deny": agent.approval_denial_policy,
        "paused": {
            **origin.model_dump(mode="json"),
            "state": base64.b64encode(write_state(asked.native)).decode(),
            "unseen": asked.unseen,
        },
    }


def _tell(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"Sayso answered {answer.status_code}: {answer.text[:200]}"
