"""Look up runs, suspensions and agents for a caller. Foreign records and drills are answered like missing ones."""

from functools import lru_cache

import structlog
from pydantic import ValidationError

from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import InvalidInput, NotFound, Unreadable
from sayso.runner.agents import AgentManifest
from service.auth.credentials import Principal
from service.store.runs.runs import Run
from service.wiring import Wiring

_LOG = structlog.get_logger(__name__)


async def find_run(parts: Wiring, caller: Principal, run_id: str) -> Run:
    """Return a run that the caller may see. Raises `NotFound`, and `Unreadable` if the caller could see it."""
    unknown = NotFound(f"There is no run {run_id!r} for this credential.")
    try:
        run = await parts.runs.read(run_id)
    except Unreadable:
        if caller.owner is None or await parts.runs.is_of(caller.owner, run_id=run_id):
            raise
        raise unknown from None
    if caller.owner is not None and (run.owner != caller.owner or run.is_drill):
        raise unknown
    return run


async def find_suspension(
    parts: Wiring, owner: str | None, suspension_id: str, unknown: NotFound | None = None
) -> tuple[SuspensionRecord, int]:
    """Return a suspension of `owner`, of anyone if None, and the store's time; raises `unknown`, `Unreadable`."""
    unknown = unknown or NotFound(f"There is no suspension {suspension_id!r} for this credential.")
    try:
        suspension = await parts.desk.suspensions.read(suspension_id)
    except NotFound:
        raise unknown from None
    except Unreadable:
        if owner is None or await parts.runs.is_of(owner, suspension_id=suspension_id):
            raise
        raise unknown from None
    if owner is not None and (suspension.record.run.owner != owner or suspension.record.is_drill):
        raise unknown
    return suspension.record, suspension.now_ms


async def find_agent(parts: Wiring, name: str) -> AgentManifest:
    """Return a registered agent. Raises `InvalidInput` with the registered names."""
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
    """Return the manifest of a registered agent, or None, with a log entry, if this version cannot read it."""
    try:
        return AgentManifest.model_validate_json(manifest)
    except ValidationError as error:
        _LOG.error("agent_unreadable", error=str(error.errors(include_url=False, include_input=False)[0])[:500])
        return None
