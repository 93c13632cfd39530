"""Begin a run in the agent's own process: up to its first calls, which are asked of Sayso; a worker does the rest."""

import base64
import logging
from collections.abc import Sequence

from pydantic import JsonValue

from sayso.canonical import parse_json
from sayso.client import AsyncClient
from sayso.decisions import JsonObject
from sayso.dialects.fits import MOST_AT_ONCE, fit_events
from sayso.dialects.tables import Dialect
from sayso.errors import SaysoError
from sayso.frameworks import Asked, Done, FrameworkAgent, known_id, open_gate
from sayso.replies import Suspension
from sayso.states import write_state

_LOG = logging.getLogger("sayso")


async def start(agent: FrameworkAgent, text: str, client: AsyncClient, title: str = "") -> Suspension | JsonValue:
    """Run the agent up to its first calls and ask for them; without any, return what it came to.

    Whoever began it may end: a worker takes it up when everything is decided. Raises `InvalidJson`, naming the key, for
    a state that is not JSON (then nothing was asked), and what a client raises.
    """
    with open_gate(None):
        reached = await agent.framework.begin(text)
    if isinstance(reached, Done):
        return reached.result
    waiting = await client.suspend(_write(agent, reached, title or " ".join(text.split())[:80]))
    await _tell(client, waiting.run.id, agent.framework.origin.framework, reached.told)
    return waiting


async def _tell(client: AsyncClient, run_id: str, framework: str, told: Sequence[JsonObject]) -> None:
    """Tell what was said up to there; the run waits all the same where that fails."""
    if not told or framework not in set(Dialect):
        return
    try:
        await client.tell(run_id, framework, fit_events(told)[:MOST_AT_ONCE], source=framework)
    except SaysoError as error:
        _LOG.warning("Sayso was not told what the run said before it waited: %s", error.message)


def _write(agent: FrameworkAgent, asked: Asked, title: str) -> JsonObject:
    origin = agent.manifest().origin
    return {
        "agent": agent.name,
        "title": title,
        "calls": [
            {"tool": one.name, "args": parse_json(one.args_json.strip() or "{}"), "call_id": known_id(one.call_id)}
            for one in asked.calls
        ],
        "on_deny": agent.approval_denial_policy,
        "paused": {
            **origin.model_dump(mode="json"),
            "state": base64.b64encode(write_state(asked.native)).decode(),
            "unseen": asked.unseen,
        },
    }
