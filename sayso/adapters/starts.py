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
from sayso.errors import SaysoError, Unavailable
from sayso.frameworks import Asked, Done, FrameworkAgent, open_gate
from sayso.states import write_state

_TRIES = 3
_TIMEOUT_S = 30
_LOG = logging.getLogger("sayso")


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
        found = await self._send("/api/v1/suspensions", body)
        return Suspended(run_id=found["run"]["id"], suspension_id=found["id"], status=found["status"])

    async def tell(self, run_id: str, told: Sequence[JsonObject]) -> None:
        """Tell what happened before the run was asked for; what cannot be told is logged, for it waits all the same."""
        try:
            for body in told:
                await self._send(f"/api/v1/runs/{run_id}/events", body)
        except SaysoError as error:
            _LOG.warning("What happened before %s paused could not be told: %s", run_id, error.message)

    async def _send(self, path: str, body: JsonObject) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Idempotency-Key": new_id("ask")}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=_TIMEOUT_S) as http:
            for _ in range(_TRIES):
                try:
                    answer = await http.post(path, json=body)
                except httpx.TransportError:
                    continue
                if not answer.is_success:
                    raise Refused(_tell(answer), status=answer.status_code)
                return answer.json()
        raise Unavailable(f"Sayso at {self.url} cannot be reached. Start it, or correct its address.")


async def start(agent: FrameworkAgent, text: str, sayso: Sayso, title: str = "") -> Suspended | JsonValue:
    """Run the agent up to its first calls and ask for them; without any, return what it came to.

    Raises `InvalidJson`, naming the key, for a state that is not JSON: then nothing was asked.
    """
    with open_gate(None):
        reached = await agent.framework.begin(text)
    if isinstance(reached, Done):
        return reached.result
    waits = await sayso.ask(_write(agent, reached, title or " ".join(text.split())[:80]))
    await sayso.tell(waits.run_id, reached.told)
    return waits


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
