"""Runs: start one of a registered agent, erase its contents, cancel those of a revoked key or deleted instance."""

import structlog
from pydantic import JsonValue, ValidationError

from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor, ActorKind, Erasure
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import OURS, Progress, RunRef
from sayso.errors import Conflict, DeadlinePassed, InvalidInput, NotFound, Unavailable
from sayso.runner.agents import AgentManifest
from sayso.runner.protocol import FrameworkState
from sayso.runner.transcripts import RunState, start_state
from service.core.auth.api_keys import LATEST_MS
from service.core.operations.queue_store import count_live_workers
from service.core.store.deliveries import Deliveries
from service.core.store.runs.erasures import Why
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring


async def erase_run(wiring: Wiring, run_id: str, by: Actor, reason: str) -> Erasure:
    """Erase a run's contents, and what features quote of them; repeatable. Raises `InvalidInput`, and as `Erasures`."""
    reason = reason.strip()
    if not reason:
        raise InvalidInput("An erasure needs a reason. Say why, without the data that you erase.")
    now_ms = await wiring.schedule.now_ms()
    erasure = await wiring.retention.erasures.erase(run_id, Why(by, reason, now_ms))
    for clean_up in wiring.store.hooks.cleanups:
        await clean_up(wiring.store)
    return erasure


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
    origin = manifest.origin
    if origin.framework == OURS:
        begun: RunState | FrameworkState = start_state(run.id, run.agent, text, run.claimed, run.thread_id)
    else:
        begun = FrameworkState(
            agent=manifest.name,
            framework=origin.framework,
            state_schema=origin.state_schema,
            text=text,
            progress=Progress(usage=()),
        )
    state = seal_state(begun.model_dump_json().encode())
    return await parts.desk.start(run, state, manifest.approval_denial_policy, key=key, request=request, origin=origin)


async def is_demo_served(parts: Wiring) -> bool:
    """Return whether a worker runs and the demo agent is registered."""
    return await count_live_workers(parts) > 0 and await _find_demo(parts) is not None


async def start_demo(parts: Wiring, by: str) -> Saved:
    """Start the demo agent in the name of its key, which any reviewer may decide; once a day. Raises `Conflict`."""
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


BY = Actor(id="desk", kind=ActorKind.POLICY, channel="desk")  # the actor who cancels the runs of a revoked key
_LOG = structlog.get_logger(__name__)


async def withdraw_runs(parts: Wiring, name: str) -> int:
    """Cancel the unfinished runs of a revoked key, except unreadable ones; return their number. Idempotent."""
    revocations = await parts.revocation_cache.find(fresh=True)
    cancelled = 0
    for suspension_id in await parts.runs.unfinished_of(name):
        try:
            suspension = await parts.desk.suspensions.read(suspension_id)
            reason = revocations.find_withdrawal(suspension.record.run)
            if reason is not None:
                await withdraw_run(parts, suspension.record.run, reason)
                cancelled += 1
        except Unavailable:
            raise
        except (Conflict, NotFound, ValueError) as error:
            _LOG.warning("run_not_withdrawn", suspension=suspension_id, why=f"{type(error).__name__}: {error}")
    return cancelled


async def withdraw_run(parts: Wiring, run: RunRef, reason: str) -> None:
    """Cancel one run for this reason; raises `Conflict` when it has ended otherwise."""
    await parts.desk.cancel(run.id, BY, reason.removesuffix("."))


_BY = Actor(id="provisioner", kind=ActorKind.AGENT, channel="aap")
_AGAIN_MS = 5_000  # delay before suspensions past their deadline are checked again


async def withdraw_all(parts: Wiring, instance_id: str) -> int:
    """Cancel all pending suspensions of the instance; return their number."""
    withdrawn, late = 0, False
    for suspension_id in await parts.runs.waiting_of(f"aap:{instance_id}"):
        try:
            await parts.desk.withdraw(suspension_id, _BY)
            withdrawn += 1
        except DeadlinePassed:
            late = True  # its fallback has decided, or the clock is in doubt
        except Conflict:
            continue  # it was decided in the meantime
    if late:
        await parts.part(Deliveries).defer(f"gone:{instance_id}", await parts.schedule.now_ms() + _AGAIN_MS)
    else:
        await parts.part(Deliveries).forget(f"gone:{instance_id}")
    return withdrawn
