"""Put calls of a run that is driven elsewhere before the policy, and before people where it says so."""

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from sayso.agents import AgentManifest
from sayso.clock import new_id
from sayso.decisions import JsonObject
from sayso.errors import InvalidInput
from sayso.gates import GatedCall
from sayso.suspensions import Origin, ResumeSpec, RunRef
from sayso.tool_calls import ToolCall
from service.api.dependencies import Caller, IdempotencyKey, Parts
from service.api.quick_routes import QuickRoute
from service.api.runs import find_agent
from service.api.views import SuspensionView
from service.openapi import WRITES
from service.schemas import check_value
from service.states import PausedFramework, seal_framework

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=QuickRoute)


class AskedCall(BaseModel):
    """One call that an agent wants to make."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str = Field(min_length=1, max_length=200, description="A tool of the agent.")
    args: JsonObject = Field(default={}, description="Its arguments, whole.")
    call_id: str = Field(default="", max_length=200, description="The agent's own id for the call, if it has one.")


class AskRequest(BaseModel):
    """Calls that are to be judged together; what is approved is run by a worker, once."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "agent": "demo",
                    "title": "Move savings",
                    "calls": [
                        {
                            "tool": "bank_account.transfer",
                            "args": {"from_account": "checking", "to_account": "saving", "amount": 5000.0},
                        }
                    ],
                }
            ]
        },
    )

    agent: str = Field(min_length=1, max_length=200, description="A registered agent; `GET /api/v1/agents` lists them.")
    calls: tuple[AskedCall, ...] = Field(min_length=1, max_length=50)
    title: str = Field(default="", max_length=200, description="What people see.")
    thread_id: str | None = Field(default=None, min_length=1, max_length=200, description="By default the run's id.")
    context: JsonObject = Field(default={}, description="Facts that policy rules may look at.")
    tags: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = Field(default=(), max_length=20)
    coverage: Literal["all", "any"] = Field(
        default="all", description="Whether all calls put to people are to be decided, or any one of them is enough."
    )
    on_deny: Literal["continue", "degrade", "fail"] = Field(
        default="continue", description="What a denial means for the other calls: they run, or all are skipped."
    )
    paused: PausedFramework | None = Field(
        default=None, description="The framework's run that waits for these calls; a worker takes it up afterwards."
    )


@router.post("", status_code=201, operation_id="askForCalls", responses=WRITES)
async def ask_for_calls(
    body: AskRequest, caller: Caller, parts: Parts, key: IdempotencyKey, response: Response
) -> SuspensionView:
    """Have calls judged. What the policy allows or denies is decided at once; the rest waits for people.

    When everything is decided, a worker runs what was approved. Wait with `GET /suspensions/{suspension_id}?wait=30s`
    for the decision, with `GET /runs/{run_id}?wait=30s` for the results.
    """
    manifest = await find_agent(parts, caller.tenant, body.agent)
    state = seal_framework(manifest, body.paused, parts.settings.state_limit_bytes) if body.paused else None
    run_id = new_id("run")
    run = RunRef(
        id=run_id,
        agent=body.agent,
        owner=caller.name,
        thread_id=body.thread_id or run_id,
        title=body.title,
        tags=body.tags,
        context=body.context,
    )
    saved = await parts.desk.ask(
        caller.tenant,
        run,
        [_gated(manifest, index, call) for index, call in enumerate(body.calls)],
        ResumeSpec(resumer=manifest.origin.resumer if state else "calls", coverage=body.coverage),
        body.on_deny,
        key=key,
        request=body.model_dump(mode="json"),
        paused=(state, _origin(body.paused)) if state and body.paused else None,
    )
    response.headers["Location"] = f"/api/v1/suspensions/{saved.record.id}"
    return SuspensionView.of(saved.record)


def _gated(manifest: AgentManifest, index: int, call: AskedCall) -> GatedCall:
    """Return the call with its tool's definition; nobody is asked about a call that could not run."""
    definition = next((one for one in manifest.tools if one.name == call.tool), None)
    if definition is None:
        known = ", ".join(one.name for one in manifest.tools) or "none"
        path = f"$.calls[{index}].tool"
        raise InvalidInput(
            f"The agent {manifest.name!r} has no tool {call.tool!r}. It has: {known}.",
            errors=[{"path": path, "message": "is not a tool of the agent"}],
        )
    check_value(definition.parameters, call.args, f"calls[{index}].args")
    return GatedCall(ToolCall(call_id=call.call_id, index=index, name=call.tool, args=call.args), definition)


def _origin(paused: PausedFramework) -> Origin:
    return Origin.model_validate(paused.model_dump(exclude={"state", "unseen"}))
