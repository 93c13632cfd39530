"""Start a run in the agent's own process, up to its first suspension. A worker resumes it."""

import base64
import logging
from collections.abc import Sequence

from pydantic import JsonValue

from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.policy.engine import ASK_EVERYTHING
from sayso.core.policy.events import PolicyEvent
from sayso.core.records.run_state import write_state
from sayso.core.records.suspensions import RunStatus
from sayso.core.text.language import cut
from sayso.errors import SaysoError
from sayso.runner.batches import Batch, end_call
from sayso.runner.execution import CallExecutor, use_executor
from sayso.runner.judging import judge_turn
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, read_turn
from sayso.timeline.external_events import MAX_BATCH_EVENTS, fit_events
from sayso.timeline.merging import SourceFormat
from sayso.wire.suspensions import SuspensionView

_TITLE_CHARS = 80
_LOG = logging.getLogger("sayso")
_NOT_RUN = "Not run: another call of the same turn is invalid. Make this call again."


async def start(agent: FrameworkAgent, text: str, client: AsyncClient, title: str = "") -> SuspensionView | JsonValue:
    """Run the agent until its first calls and suspend it for workers, or return its result if it calls no tools.

    Raises `InvalidJson` with the key for a state that is not JSON, and the errors of the client.
    """
    with use_executor(None, agent.name):
        reached = await agent.framework.begin(text)
    events = [*reached.external_events]
    while isinstance(reached, FrameworkTurn) and (refused := _refuse(agent, reached)) is not None:
        executor = CallExecutor(refused, {}, _keep_nothing, reached.unseen)
        with use_executor(executor, agent.name):
            reached = await agent.framework.resume(reached.native, executor)
        events += reached.external_events
    if isinstance(reached, Done):
        if reached.status is RunStatus.FAILED:
            raise SaysoError(reached.error or f"The run of {agent.name!r} failed before its first tool call.")
        return reached.result
    suspension = await client.suspend(_write(agent, reached, title or cut(" ".join(text.split()), _TITLE_CHARS)))
    await _send_events(client, suspension.run.id, agent.framework.origin.framework, events)
    return suspension


def _refuse(agent: FrameworkAgent, turn: FrameworkTurn) -> Batch | None:
    """Return the turn with all calls ended if one of them cannot run, or None if all can be reviewed."""
    about = PolicyEvent(run_id="", agent=agent.name)
    batch, _ = judge_turn(agent, read_turn(turn), ASK_EVERYTHING, about)
    if all(call.result is None for call in batch.calls):
        return None
    ended = [call if call.result is not None else end_call(call, _NOT_RUN) for call in batch.calls]
    return batch.model_copy(update={"calls": tuple(ended)})


async def _keep_nothing(_batch: Batch) -> None:
    """Keep nothing: no call has run."""


async def _send_events(client: AsyncClient, run_id: str, framework: str, events: Sequence[JsonObject]) -> None:
    """Send the events so far. If this fails, the run still waits."""
    if not events or framework not in set(SourceFormat):
        return
    try:
        await client.report_events(run_id, framework, fit_events(events)[:MAX_BATCH_EVENTS], source=framework)
    except SaysoError as error:
        _LOG.warning("The events of run %s before its suspension were not sent: %s", run_id, error.message)


def _write(agent: FrameworkAgent, turn: FrameworkTurn, title: str) -> JsonObject:
    origin = agent.manifest().origin
    return {
        "agent": agent.name,
        "title": title,
        "calls": [
            {"tool": call.name, "args": parse_json(call.args_json.strip() or "{}"), "call_id": call.call_id}
            for call in read_turn(turn).calls
        ],
        "on_deny": agent.approval_denial_policy,
        "framework_run": {
            **origin.model_dump(mode="json"),
            "state": base64.b64encode(write_state(turn.native)).decode(),
            "unseen": turn.unseen,
        },
    }
