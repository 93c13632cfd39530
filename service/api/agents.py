"""Routes of registered agents."""

from fastapi import APIRouter
from pydantic import BaseModel

from sayso.runner.agents import AgentManifest
from service.api.routing.dependencies import Caller, Parts
from service.api.routing.lookups import read_manifest
from service.api.routing.routes import SignedInRoute
from service.http.openapi import problems

router = APIRouter(prefix="/agents", tags=["agents"], route_class=SignedInRoute)


class AgentList(BaseModel):
    """Registered agents by name."""

    agents: list[AgentManifest]


@router.get("", operation_id="listAgents", responses=problems(401))
async def list_agents(caller: Caller, parts: Parts) -> AgentList:
    """List the registered agents with their tools and schemas.

    Agents that a worker of an incompatible version registered are left out.
    """
    manifests = await parts.runs.agents()
    return AgentList(agents=[manifest for manifest in map(read_manifest, manifests.values()) if manifest is not None])
