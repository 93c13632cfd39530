"""Start runs, read them, wait for them, cancel them."""

from functools import lru_cache
from typing import Annotated

import structlog
from fastapi import APIRouter, Body, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sayso.clock import new_id
from sayso.errors import InvalidInput, NotFound, Unreadable
from sayso.records.run_state import seal_state
from sayso.records.suspensions import OURS, RunRef, RunStatus
from sayso.runner.agents import AgentManifest
from sayso.runner.protocol import FrameworkState
from sayso.runner.transcripts import RunState, start_state
from service.api.routing.contexts import Context
from service.api.routing.dependencies import (
    LONGEST_PAGE,
    Caller,
    IdempotencyKey,
    Limit,
    Parts,
    Person,
    RunId,
    Skip,
    Wait,
)
from service.api.routing.routes import SignedInRoute
from service.api.routing.waits import wait_for
from service.api.views.runs import RunView, UnreadableView
from service.api.views.suspensions import SuspensionView
from service.auth.credentials import Principal
from service.http.openapi import ASKS, READS, WAITS, WRITES, problems
from service.store.runs.runs import Run
from service.store.suspensions.reading import split_readable
from service.wiring import Wiring

router = APIRouter(prefix="/runs", tags=["runs"], route_class=SignedInRoute)

_TITLE_CHARS = 80
_LOG = structlog.get_logger(__name__)


class RunRequest(BaseModel):
    """What a run is started with."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "agent": "demo",
                    "input": "Transfer $5000 from my checking to my saving account.",
                    "title": "Move savings",
                    "tags": ["bank"],
                }
            ]
        },
    )

    agent: str = Field(min_length=1, max_length=200, description="A registered agent; `GET /api/v1/agents` lists them.")
    input: str = Field(min_length=1, max_length=100_000, description="What the agent is asked.")
    title: str | None = Field(
        default=None, max_length=200, description="What people see; by default the input's start."
    )
    thread_id: str | None = Field(
        default=None, min_length=1, max_length=200, description="By default the run's own id."
    )
    context: Context = Field(default={}, description="What you say of the run. Rules read it as `claimed`.")
    tags: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = Field(default=(), max_length=20)


class RunChain(BaseModel):
    """All pauses of one run, its start first."""

    suspensions: list[SuspensionView]
    cut: bool = Field(description="Whether there are earlier ones; `previous_id` leads to them.")
    unreadable: list[UnreadableView] = Field(description="A pause that cannot be read; none before it can be found.")


class RunPage(BaseModel):
    """Runs, the newest first."""

    runs: list[RunView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")
    unreadable: list[UnreadableView] = Field(description="Runs of this page whose record cannot be read.")


class CancelRequest(BaseModel):
    """Why a run is cancelled."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"reason": "A mistake"}]})

    reason: str | None = Field(default=None, max_length=2000)


@router.post("", status_code=201, operation_id="startRun", responses=ASKS)
async def start_run(body: RunRequest, caller: Caller, parts: Parts, key: IdempotencyKey, response: Response) -> RunView:
    """Start a run of a registered agent. It goes on by itself; follow it with `GET /runs/{run_id}?wait=30s`."""
    manifest = await find_agent(parts, body.agent)
    run_id = new_id("run")
    thread_id = body.thread_id or run_id
    run = RunRef(
        id=run_id,
        agent=body.agent,
        owner=caller.name,
        thread_id=thread_id,
        title=" ".join(body.input.split())[:_TITLE_CHARS] if body.title is None else body.title,
        tags=body.tags,
        facts={**manifest.context, **caller.context},
        claimed=body.context,
        key_id=caller.key_id,
    )
    saved = await parts.desk.start(
        run,
        seal_state(_begin(manifest, run, body.input).model_dump_json().encode()),
        manifest.approval_denial_policy,
        key=key,
        request=body.model_dump(mode="json"),
        origin=manifest.origin,
    )
    response.headers["Location"] = f"/api/v1/runs/{saved.record.run.id}"
    return RunView.of(await parts.runs.read(saved.record.run.id))


@router.get("", operation_id="listRuns", responses=problems(401))
async def list_runs(
    caller: Caller, parts: Parts, status: RunStatus | None = None, skip: Skip = 0, limit: Limit = 50
) -> RunPage:
    """List runs, the newest first; an agent sees its own, a reviewer all, suspended ones by their deadline."""
    found = await parts.runs.list_runs(status=status, owner=caller.owner, skip=skip, limit=limit + 1)
    more = len(found) > limit
    return RunPage(
        runs=[RunView.of(run) for run in found[:limit] if isinstance(run, Run)],
        next_skip=skip + limit if more else None,
        unreadable=UnreadableView.list_of(found[:limit]),
    )


@router.get("/{run_id}", operation_id="getRun", responses=WAITS)
async def get_run(request: Request, run_id: RunId, caller: Caller, parts: Parts, wait: Wait) -> RunView:
    """Return a run; with `wait`, as soon as it has ended, or as it stands when the time is over."""

    async def read() -> Run:
        return await find_run(parts, caller, run_id)

    run = await wait_for(request, run_id, read, who=caller.name, done=lambda run: run.status.ended, wait_s=wait)
    return RunView.of(run)


@router.get("/{run_id}/suspensions", operation_id="getRunSuspensions", responses=READS)
async def get_run_suspensions(run_id: RunId, caller: Caller, parts: Parts) -> RunChain:
    """Return all pauses of a run in the order they happened, its start first; each names the one before and after."""
    run = await find_run(parts, caller, run_id)
    found = await parts.desk.suspensions.read_chain(run.suspension_id, LONGEST_PAGE)
    records, _ = split_readable(found)
    cut = bool(records) and records[0].previous_id is not None
    return RunChain(
        suspensions=[SuspensionView.of(record) for record in records],
        cut=cut,
        unreadable=UnreadableView.list_of(found),
    )


@router.post("/{run_id}/cancel", operation_id="cancelRun", responses=WRITES)
async def cancel_run(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
    body: Annotated[CancelRequest | None, Body()] = None,
) -> RunView:
    """End a run for good, wherever it stands. What already ran stays done."""
    await find_run(parts, caller, run_id)
    reason = body.reason if body is not None else None
    await parts.desk.cancel(run_id, caller.actor("api"), reason, key=key)
    return RunView.of(await parts.runs.read(run_id))


@router.post("/{run_id}/revive", operation_id="reviveRun", responses=WRITES)
async def revive_run(run_id: RunId, caller: Person, parts: Parts, key: IdempotencyKey) -> RunView:
    """Have a run that was given up tried again: all that was decided still stands."""
    run = await find_run(parts, caller, run_id)
    await parts.desk.revive(run.suspension_id, caller.actor("api"), key, run_id)
    return RunView.of(await parts.runs.read(run_id))


def _begin(manifest: AgentManifest, run: RunRef, text: str) -> RunState | FrameworkState:
    """Return the state of a run that has not begun, in the form that its resumer reads."""
    if manifest.origin.framework == OURS:
        return start_state(run.id, run.agent, text, run.claimed, run.thread_id)
    origin = manifest.origin
    return FrameworkState(agent=manifest.name, framework=origin.framework, state_schema=origin.state_schema, text=text)


async def find_run(parts: Wiring, caller: Principal, run_id: str) -> Run:
    """Return the run if this caller may see it; raises `NotFound` in the same words where it may not.

    Raises `Unreadable` where the run is this caller's to see and its record cannot be read.
    """
    unknown = NotFound(f"There is no run {run_id!r} for this credential.")
    try:
        run = await parts.runs.read(run_id)
    except Unreadable:
        if caller.owner is None or await parts.runs.is_of(caller.owner, run_id=run_id):
            raise
        raise unknown from None
    if caller.owner is not None and run.owner != caller.owner:
        raise unknown
    return run


async def find_agent(parts: Wiring, name: str) -> AgentManifest:
    """Return what is known of a registered agent; raises `InvalidInput`, naming those there are."""
    manifests = await parts.runs.agents(fresh=False)
    if name not in manifests:
        manifests = await parts.runs.agents()
    if name in manifests:
        manifest = read_manifest(manifests[name])
        if manifest is None:
            raise Unreadable(f"The agent {name!r} was registered by a worker of another version. Run the same version.")
        return manifest
    known = ", ".join(manifests)
    todo = f"Registered are: {known}." if known else "None is registered yet; a worker registers them when it starts."
    raise InvalidInput(
        f"There is no agent named {name!r}. {todo}", errors=[{"path": "$.agent", "message": "is not registered"}]
    )


@lru_cache(maxsize=1024)
def read_manifest(manifest: bytes) -> AgentManifest | None:
    """Return what a worker registered of an agent, or None where it cannot be read here; the log says so."""
    try:
        return AgentManifest.model_validate_json(manifest)
    except ValidationError as error:
        _LOG.error("agent_unreadable", error=str(error.errors(include_url=False, include_input=False)[0])[:500])
        return None
