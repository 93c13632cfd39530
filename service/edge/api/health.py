"""Health checks."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sayso.core.records.freezes import JUMP_MS, TIME
from sayso.errors import Unavailable
from service.core.operations.queue_store import QueueStore
from service.core.store.keys import EMPTIED
from service.edge.api.dependencies import OpenParts
from service.edge.api.routes import OpenRoute
from service.edge.http.middleware import is_closing
from service.edge.http.openapi import problems

router = APIRouter(tags=["health"], route_class=OpenRoute)


class Alive(BaseModel):
    """The process is running."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """The store is reachable, set up, and accepts writes."""

    status: Literal["ready"] = "ready"
    clock: Literal["right", "in doubt", "silent"] = Field(
        description="`in doubt`: the store's clock jumped, and no deadline passes until an admin unfreezes time. "
        "`silent`: no clock process has ticked for five minutes."
    )
    unreadable: int = Field(
        description="The number of stored records known to be unreadable; `sayso doctor` names them."
    )
    rules: Literal["in force", "held"] = Field(
        description="`held`: the rules file is invalid, and its last valid rules stay in force; `sayso doctor` "
        "names the fault."
    )
    commits: Literal["complete", "lost"] = Field(
        description="`lost`: the store went back, and everything is frozen until an admin has checked what ran."
    )
    queue: Literal["reachable", "away"] = Field(
        description="`away`: the store of `SAYSO_QUEUE_URL` takes no jobs, so approved calls wait; `sayso doctor` says "
        "why."
    )


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", operation_id="getHealth", responses=problems())
async def healthz() -> Alive:
    """Answer while the process is running."""
    return Alive()


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", operation_id="getReadiness", responses=problems())
async def readyz(request: Request, parts: OpenParts) -> Ready:
    """Answer while the store is reachable, set up and accepts writes; otherwise the status is 503."""
    if is_closing(request.app.state):
        raise Unavailable("draining: this process stops. Send requests to another one.")
    now_ms = await parts.schedule.writing_ms()
    if not await parts.schedule.is_set_up():
        raise Unavailable(EMPTIED)
    unreadable = len(await parts.inspections.sample())
    rules: Literal["in force", "held"] = "held" if parts.rulebook.is_held() else "in force"
    frozen = await parts.freezes.in_force(fresh=True)
    clock: Literal["right", "in doubt", "silent"] = "right"
    if any(freeze.scope == TIME for freeze in frozen):
        clock = "in doubt"
    elif now_ms - parts.freezes.mark_ms() > JUMP_MS:
        clock = "silent"
    commits: Literal["complete", "lost"] = "lost" if any(freeze.lost for freeze in frozen) else "complete"
    queue: Literal["reachable", "away"] = "away" if await parts.feature(QueueStore).find_fault() else "reachable"
    return Ready(clock=clock, unreadable=unreadable, rules=rules, commits=commits, queue=queue)
