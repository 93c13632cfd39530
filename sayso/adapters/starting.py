"""Begin a run in the agent's own process: up to its first calls, which are asked of Sayso; a worker does the rest."""

import base64
import logging
from collections.abc import Sequence

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, parse_json
from sayso.client.clients import AsyncClient
from sayso.client.responses import Suspension
from sayso.errors import SaysoError
from sayso.policy.engine import ASK_EVERYTHING, PolicyEvent
from sayso.records.run_state import write_state
from sayso.records.suspensions import RunStatus
from sayso.runner.batches import Batch, end_call
from sayso.runner.execution import CallExecutor, use_executor
from sayso.runner.judging import judge_turn
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, read_turn
from sayso.timeline.limits import MOST_AT_ONCE, fit_events
from sayso.timeline.sources import SourceFormat

_LOG = logging.getLogger("sayso")
_UNASKED = "Not run: nobody is asked about a turn of which another call cannot run. Ask for it again."


async def start(agent: FrameworkAgent, text: str, client: AsyncClient, title: str = "") -> Suspension | JsonValue:
    """Run the agent up to its first calls and ask for them; without any, return what it came to.

    Whoever began it may end: a worker takes it up when everything is decided. A model whose calls cannot run, for they
    are no JSON or of no tool, is told so first. Raises `InvalidJson`, naming the key, for a state that is not JSON
    (then nothing was asked), and what a client raises.
    """
    with use_executor(None):
        reached = await agent.framework.begin(text)
    told = [*reached.external_events]
    while isinstance(reached, FrameworkTurn) and (refused := _refuse(agent, reached)) is not None:
        executor = CallExecutor(refused, {}, _keep_nothing, reached.unseen)
        with use_executor(executor):
            reached = await agent.framework.resume(reached.native, executor)
        told += reached.external_events
    if isinstance(reached, Done):
        if reached.status is RunStatus.FAILED:
            raise SaysoError(reached.error or f"The run of {agent.name!r} failed before it asked for anything.")
        return reached.result
    waiting = await client.suspend(_write(agent, reached, title or " ".join(text.split())[:80]))
    await _tell(client, waiting.run.id, agent.framework.origin.framework, told)
    return waiting


def _refuse(agent: FrameworkAgent, asked: FrameworkTurn) -> Batch | None:
    """Return the turn with none of its calls run, where one of them cannot; None where people can be asked."""
    about = PolicyEvent(run_id="", agent=agent.name)
    batch, _ = judge_turn(agent, read_turn(asked), ASK_EVERYTHING, about)
    if all(one.result is None for one in batch.calls):
        return None
    ended = [one if one.result is not None else end_call(one, _UNASKED) for one in batch.calls]
    return batch.model_copy(update={"calls": tuple(ended)})


async def _keep_nothing(_batch: Batch) -> None:
    """Nothing has run, so there is nothing to keep."""


async def _tell(client: AsyncClient, run_id: str, framework: str, told: Sequence[JsonObject]) -> None:
    """Tell what was said up to there; the run waits all the same where that fails."""
    if not told or framework not in set(SourceFormat):
        return
    try:
        await client.tell(run_id, framework, fit_events(told)[:MOST_AT_ONCE], source=framework)
    except SaysoError as error:
        _LOG.warning("Sayso was not told what the run said before it waited: %s", error.message)


def _write(agent: FrameworkAgent, asked: FrameworkTurn, title: str) -> JsonObject:
    origin = agent.manifest().origin
    return {
        "agent": agent.name,
        "title": title,
        "calls": [
            {"tool": one.name, "args": parse_json(one.args_json.strip() or "{}"), "call_id": one.call_id}
            for one in read_turn(asked).calls
        ],
        "on_deny": agent.approval_denial_policy,
        "paused": {
            **origin.model_dump(mode="json"),
            "state": base64.b64encode(write_state(asked.native)).decode(),
            "unseen": asked.unseen,
        },
    }
