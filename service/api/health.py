"""Tell whoever watches the service whether it lives, and whether it can serve."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.dependencies import Parts
from service.api.routes import OpenRoute
from service.openapi import problems

router = APIRouter(tags=["health"], route_class=OpenRoute)


class Alive(BaseModel):
    """The process lives."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """The store answers."""

    status: Literal["ready"] = "ready"


@router.get("/healthz", operation_id="getHealth", responses=problems())
async def healthz() -> Alive:
    """Answer while the process lives."""
    return Alive()


@router.get("/readyz", operation_id="getReadiness", responses=problems())
async def readyz(parts: Parts) -> Ready:
    """Answer while the store can be reached; 503 otherwise."""
    await parts.agenda.now_ms()
    return Ready()
