"""Start runs of registered agents, and the first run of a new desk: one of the demo agent."""

import asyncio

from pydantic import JsonValue, ValidationError

from sayso.core.clock import new_id
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import OURS, Progress, RunRef
from sayso.errors import Conflict
from sayso.runner.agents import AgentManifest
from sayso.runner.protocol import FrameworkState
from sayso.runner.transcripts import RunState, start_state
from service.auth.api_keys import LATEST_MS
from service.jobs import count_workers
from service.store.suspensions.saving import Saved
from service.wiring import Wiring

DEMO = "demo"
DEMO_TAG = "first-steps"
DEMO_INPUT = (
    "Transfer $5000 from my checking to saving account. And calculate my potential interests after 5 years if the "
    "annual interest rate is 3%."
)
"""A request that the recorded model of the demo replays."""


async def start_run(
    parts: Wiring, manifest: AgentManifest, run: RunRef, text: str, key: str | None = None, request: JsonValue = None
) -> Saved:
    """Start a run of a registered agent; a worker executes it. `key` and `request` are as in `Desk.start`."""
    state = seal_state(_start_state(manifest, run, text).model_dump_json().encode())
    return await parts.desk.start(
        run, state, manifest.approval_denial_policy, key=key, request=request, origin=manifest.origin
    )


async def is_demo_served(parts: Wiring) -> bool:
    """Return whether a worker runs and the demo agent is registered."""
    workers = await asyncio.to_thread(count_workers, parts.settings.store_url)
    return workers > 0 and await _find_demo(parts) is not None


async def start_demo(parts: Wiring, by: str) -> Saved:
    """Start the demo agent in the name of its key, so that any reviewer may decide; once a day. Raises `Conflict`.

    Its tools only record their effects, and its request is always the same.
    """
    manifest = await _find_demo(parts)
    keys = await parts.api_keys.list_all()
    key = next((key for key in keys if (key.name, key.kind) == (DEMO, "agent") and key.holds(LATEST_MS - 1)), None)
    if manifest is None or key is None:
        raise Conflict("No demo agent with a valid key is registered here. Start Sayso with `make up`.")
    run_id = new_id("run")
    run = RunRef(
        id=run_id,
        agent=DEMO,
        owner=DEMO,
        thread_id=run_id,
        title=f"First steps, started by {by}",
        tags=(DEMO_TAG,),
        facts={**manifest.context, **key.context},
        key_id=key.id,
        key_maker=key.created_by,
    )
    return await start_run(parts, manifest, run, DEMO_INPUT, key=DEMO_TAG, request=DEMO_TAG)


async def _find_demo(parts: Wiring) -> AgentManifest | None:
    raw = (await parts.runs.agents()).get(DEMO)
    try:
        return AgentManifest.model_validate_json(raw) if raw is not None else None
    except ValidationError:
        return None  # registered by a worker of another version


def _start_state(manifest: AgentManifest, run: RunRef, text: str) -> RunState | FrameworkState:
    if manifest.origin.framework == OURS:
        return start_state(run.id, run.agent, text, run.claimed, run.thread_id)
    origin = manifest.origin
    return FrameworkState(
        agent=manifest.name,
        framework=origin.framework,
        state_schema=origin.state_schema,
        text=text,
        progress=Progress(usage=()),
    )
