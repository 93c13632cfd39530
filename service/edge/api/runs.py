"""Routes of runs, which start, list, read, cancel and revive them, and of registered agents."""

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response
from pydantic import ConfigDict, Field

from sayso.core.clock import new_id
from sayso.core.records.suspensions import RunRef, RunStatus
from sayso.core.text.language import cut
from sayso.runner.agents import AgentManifest
from sayso.wire.models import RequestBody, View
from sayso.wire.suspensions import ErasureView, RunPage, RunSuspensions, RunView
from service.core.auth.credentials import require_agent
from service.core.operations import runs as erasing
from service.core.operations import runs as starts
from service.core.operations.people import find_who, identify_request
from service.core.store.runs.runs import Run, describe_run
from service.core.store.suspensions.reading import split_readable
from service.edge.api.dependencies import (
    LONGEST_PAGE,
    Caller,
    Context,
    IdempotencyKey,
    Limit,
    Parts,
    Person,
    PersonToken,
    RunId,
    Skip,
    Wait,
    find_agent,
    find_run,
    read_manifest,
)
from service.edge.api.routes import SignedInRoute, wait_for
from service.edge.api.suspensions import view_suspension, view_unreadable
from service.edge.http.openapi import ASKS, READS, WAITS, WRITES, problems

agents = APIRouter(prefix="/agents", tags=["agents"], route_class=SignedInRoute)


class AgentList(View):
    """Registered agents by name."""

    agents: list[AgentManifest]


@agents.get("", operation_id="listAgents", responses=problems(401, 403))
async def list_agents(caller: Caller, parts: Parts) -> AgentList:
    """List the registered agents with their tools and schemas.

    Agents that a worker of an incompatible version registered are left out.
    """
    manifests = await parts.runs.agents()
    return AgentList(agents=[manifest for manifest in map(read_manifest, manifests.values()) if manifest is not None])


router = APIRouter(prefix="/runs", tags=["runs"], route_class=SignedInRoute)


class RunRequest(RequestBody):
    """A run to start."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agent": "demo",
                    "input": "Transfer $5000 from my checking to my saving account.",
                    "title": "Move savings",
                    "tags": ["bank"],
                }
            ]
        }
    )

    agent: str = Field(min_length=1, max_length=200, description="A registered agent; `GET /api/v1/agents` lists them.")
    input: str = Field(min_length=1, max_length=100_000, description="The task for the agent.")
    title: str | None = Field(
        default=None, max_length=200, description="The title for reviewers; by default the start of the input."
    )
    thread_id: str | None = Field(
        default=None, min_length=1, max_length=200, description="By default the id of the run."
    )
    context: Context = Field(default={}, description="Unverified context. Rules read it as `claimed`.")
    tags: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = Field(default=(), max_length=20)


class EraseRequest(RequestBody):
    """Why the contents are erased."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "Request of the customer, ticket 4711"}]})

    reason: str = Field(min_length=1, max_length=2000, description="Kept in the trail, so name no personal data.")


class CancelRequest(RequestBody):
    """Why the run is cancelled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "A mistake"}]})

    reason: str | None = Field(default=None, max_length=2000)


@router.post("", status_code=201, operation_id="startRun", responses=ASKS)
async def start_run(
    body: RunRequest, caller: Caller, parts: Parts, key: IdempotencyKey, token: PersonToken, response: Response
) -> RunView:
    """Start a run of a registered agent. Workers execute it; follow it with `GET /runs/{run_id}?wait=30s`."""
    require_agent(caller, body.agent)
    manifest = await find_agent(parts, body.agent)
    run_id, who = new_id("run"), await find_who(parts, caller, token)
    thread_id = body.thread_id or run_id
    ref = RunRef(
        id=run_id,
        agent=body.agent,
        owner=caller.name,
        thread_id=thread_id,
        title=cut(" ".join(body.input.split()), 80) if body.title is None else body.title,
        tags=body.tags,
        facts={**manifest.context, **caller.context},
        claimed=body.context,
        key_id=caller.key_id,
        key_maker=caller.key_maker,
        who=who,
    )
    request = identify_request(body.model_dump(mode="json"), who)
    saved = await starts.start_run(parts, manifest, ref, body.input, key, request)
    response.headers["Location"] = f"/api/v1/runs/{saved.record.run.id}"
    # a repeated request returns the run as it is now
    run = await parts.runs.read(saved.record.run.id) if saved.repeated else describe_run(saved.record)
    return RunView.model_validate(run)


@router.get("", operation_id="listRuns", responses=problems(401, 403))
async def list_runs(
    caller: Caller, parts: Parts, status: RunStatus | None = None, skip: Skip = 0, limit: Limit = 50
) -> RunPage:
    """List runs, the newest first, or suspended runs by their deadline. Agents see their own, people see all."""
    runs = await parts.runs.list_runs(status=status, owner=caller.owner, skip=skip, limit=limit + 1)
    more = len(runs) > limit
    return RunPage(
        runs=[
            RunView.model_validate(run)
            for run in runs[:limit]
            if isinstance(run, Run) and not (caller.owner is not None and run.is_drill)
        ],
        next_skip=skip + limit if more else None,
        unreadable=view_unreadable(runs[:limit]),
    )


@router.get("/{run_id}", operation_id="getRun", responses=WAITS)
async def get_run(request: Request, run_id: RunId, caller: Caller, parts: Parts, wait: Wait) -> RunView:
    """Return a run. `wait` delays the answer until the run has ended or the time is over."""

    async def read() -> Run:
        return await find_run(parts, caller, run_id)

    run = await wait_for(request, run_id, read, who=caller.name, done=lambda run: run.status.ended, wait_s=wait)
    return RunView.model_validate(run)


@router.get("/{run_id}/suspensions", operation_id="listRunSuspensions", responses=READS)
async def list_run_suspensions(run_id: RunId, caller: Caller, parts: Parts) -> RunSuspensions:
    """Return all suspensions of a run in order, the start first. Each names the previous and the following one."""
    run = await find_run(parts, caller, run_id)
    chain = await parts.desk.suspensions.read_chain(run.suspension_id, LONGEST_PAGE)
    records, _ = split_readable(chain)
    cut = bool(records) and records[0].previous_id is not None
    frozen = await parts.freezes.in_force()
    views = [view_suspension(record, frozen, caller.owner) for record in records]
    return RunSuspensions(suspensions=views, cut=cut, unreadable=view_unreadable(chain))


@router.post("/{run_id}/cancel", operation_id="cancelRun", responses=WRITES)
async def cancel_run(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
    body: Annotated[CancelRequest | None, Body()] = None,
) -> RunView:
    """Cancel a run for good. Effects of calls that already ran remain.

    The key that asked may, its owner, the person that it acts for, admins, and people who may deny all open items.
    """
    await find_run(parts, caller, run_id)
    reason = body.reason if body is not None else None
    await parts.desk.cancel(
        run_id, caller.reviewer("api"), reason, key=key, is_admin=caller.rights.has("cancel_any_run")
    )
    return RunView.model_validate(await parts.runs.read(run_id))


@router.post("/{run_id}/revive", operation_id="reviveRun", responses=WRITES)
async def revive_run(run_id: RunId, caller: Person, parts: Parts, key: IdempotencyKey) -> RunView:
    """Retry a run that Sayso gave up on. Its decisions remain valid."""
    run = await find_run(parts, caller, run_id)
    await parts.desk.revive(run.suspension_id, caller.actor("api"), key, run_id)
    return RunView.model_validate(await parts.runs.read(run_id))


@router.post("/{run_id}/erase", operation_id="eraseRun", responses=WRITES)
async def erase_run(run_id: RunId, body: EraseRequest, caller: Person, parts: Parts) -> ErasureView:
    """Erase the arguments, facts, texts and results of an ended run for good, even after the run was deleted.

    Who decided what, when and by which rule remains, and the trail can still be verified. A run that was erased before
    keeps its first erasure, which is returned.
    """
    return ErasureView.model_validate(await erasing.erase_run(parts, run_id, caller.actor("api"), body.reason))
