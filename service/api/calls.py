"""Put calls of a run that is driven elsewhere before the policy, and before people where it says so."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from sayso.canonical_json import JsonObject, digest_json
from sayso.clock import new_id
from sayso.errors import InvalidInput
from sayso.policy.external import ExternalCall
from sayso.records.suspensions import Origin, ResumeSpec, RunRef
from sayso.records.tool_calls import ToolCall, ToolDefinition
from sayso.records.tool_names import NAME_CHARACTERS, ToolName
from sayso.runner.agents import AgentManifest
from sayso.schemas.bounds import check_size
from service.api.routing.contexts import Context
from service.api.routing.dependencies import Caller, IdempotencyKey, Parts
from service.api.routing.quick_routes import QuickRoute
from service.api.runs import find_agent
from service.api.views.suspensions import SuspensionView
from service.auth.credentials import Principal
from service.desk.suspending import Foreign
from service.http.openapi import ASKS
from service.policy.run_states import SuspendedFramework
from service.wiring import Wiring

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=QuickRoute)


class AskedDefinition(BaseModel):
    """A tool that the agent runs itself, as its own code declares it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = Field(default="", max_length=20_000)
    parameters: JsonObject = Field(default={"type": "object"}, description="A JSON Schema, complete in itself.")
    idempotent: bool = Field(
        default=False, strict=True, description="Whether running it twice with one key does no more than once."
    )


class AskedCall(BaseModel):
    """One call that an agent wants to make."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: ToolName = Field(description=f"A tool of the agent; its name has {NAME_CHARACTERS}.")
    args: JsonObject = Field(default={}, description="Its arguments, whole.")
    definition: AskedDefinition | None = Field(
        default=None, description="What the tool is; needed with `mode: poll`, and only there."
    )
    call_id: str = Field(default="", max_length=200, description="The agent's own id for the call, if it has one.")


class AskRequest(BaseModel):
    """Calls that are to be judged together; what is approved is run once, by a worker or by whoever asked."""

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

    agent: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="A registered agent; `GET /api/v1/agents` lists them. With `mode: poll` it is the key's own name.",
    )
    mode: Literal["worker", "poll"] = Field(
        default="worker",
        description="Who runs what is approved: a worker, or with `poll` you, after `POST …/items/{item_id}/redeem`.",
    )
    calls: tuple[AskedCall, ...] = Field(min_length=1, max_length=50)
    title: str = Field(default="", max_length=200, description="What people see.")
    thread_id: str | None = Field(default=None, min_length=1, max_length=200, description="By default the run's id.")
    context: Context = Field(default={}, description="What you say of the run. Rules read it as `claimed`.")
    step: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=1_000_000,
        description="The number of the model's turn, from 1. Asks of one thread are counted; the higher number holds.",
    )
    tags: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = Field(default=(), max_length=20)
    coverage: Literal["all", "any"] = Field(
        default="all", description="Whether all calls put to people are to be decided, or any one of them is enough."
    )
    on_deny: Literal["continue", "degrade", "fail"] = Field(
        default="continue", description="What a denial means for the other calls: they run, or all are skipped."
    )
    paused: SuspendedFramework | None = Field(
        default=None, description="The framework's run that waits for these calls; a worker takes it up afterwards."
    )


@router.post("", status_code=201, operation_id="askForCalls", responses=ASKS)
async def ask_for_calls(
    body: AskRequest, caller: Caller, parts: Parts, key: IdempotencyKey, response: Response
) -> SuspensionView:
    """Have calls judged. What the policy allows or denies is decided at once; the rest waits for people.

    When everything is decided, a worker runs what was approved. Wait with `GET /suspensions/{suspension_id}?wait=30s`
    for the decision, with `GET /runs/{run_id}?wait=30s` for the results. With `mode: poll` nobody but you runs it, and
    the same Idempotency-Key leads to the same suspension for as long as that is kept.
    """
    own = body.mode == "poll"
    if not own and any(call.definition is not None for call in body.calls):
        raise InvalidInput("A worker's tools are known; give a definition with mode 'poll' alone.")
    if own and body.paused is not None:
        raise InvalidInput("With mode 'poll' no worker goes on from a state; leave paused out.")
    manifest = _describe_own(body, caller) if own else await _find_registered(parts, caller, body.agent)
    gated = [replace(_gated(manifest, *one), known=not own, step=body.step or 1) for one in enumerate(body.calls)]
    state = None
    if body.paused is not None:
        most, evaluations = parts.settings.state_limit_bytes, parts.desk.evaluations
        state = await evaluations.seal_state(manifest, body.paused, most, caller=caller.name)
    run_id = new_id("run")
    run = RunRef(
        id=run_id,
        agent=manifest.name,
        owner=caller.name,
        thread_id=body.thread_id or run_id,
        title=body.title,
        tags=body.tags,
        facts={**manifest.context, **caller.context},
        claimed=body.context,
        key_id=caller.key_id,
    )
    saved = await parts.desk.suspend(
        run,
        gated,
        ResumeSpec(mode=body.mode, resumer=_find_resumer(body, manifest), coverage=body.coverage),
        body.on_deny,
        key=key,
        request=body.model_dump(mode="json") if key else None,
        foreign=Foreign(_origin(body.paused), state) if state and body.paused else None,
    )
    response.headers["Location"] = f"/api/v1/suspensions/{saved.record.id}"
    return SuspensionView.of(saved.record)


def _find_resumer(body: AskRequest, manifest: AgentManifest) -> str:
    if body.mode == "poll":
        return "poll"
    return manifest.origin.resumer if body.paused is not None else "calls"


async def _find_registered(parts: Wiring, caller: Principal, name: str | None) -> AgentManifest:
    if name is None:
        raise InvalidInput(
            "$.agent is missing; say which registered agent it is, or run the calls yourself with mode 'poll'.",
            errors=[{"path": "$.agent", "message": "is missing; add it"}],
        )
    return await find_agent(parts, name)


def _describe_own(body: AskRequest, caller: Principal) -> AgentManifest:
    """Return the caller as an agent that has the tools it describes: nobody asks in another one's name."""
    if body.agent not in (None, caller.name):
        raise InvalidInput(
            f"With mode 'poll' the agent is {caller.name!r}, as its key says; leave agent out.",
            errors=[{"path": "$.agent", "message": "is not the name of this key"}],
        )
    tools: dict[str, ToolDefinition] = {}
    for index, call in enumerate(body.calls):
        if call.definition is None:
            path = f"$.calls[{index}].definition"
            raise InvalidInput(
                f"{path} is missing; with mode 'poll' say what the tool is.",
                errors=[{"path": path, "message": "is missing; add it"}],
            )
        check_size(call.definition.parameters)
        described = ToolDefinition(name=call.tool, **call.definition.model_dump())
        if tools.setdefault(call.tool, described) != described:
            raise InvalidInput(f"The tool {call.tool!r} is described in two ways; describe it in one.")
    return AgentManifest(
        name=caller.name,
        description="",
        approval_denial_policy=body.on_deny,
        tools=tuple(tools.values()),
        digest=digest_json([one.digest for one in tools.values()]),
    )


def _gated(manifest: AgentManifest, index: int, call: AskedCall) -> ExternalCall:
    """Return the call with its tool's definition; raises `InvalidInput` for a tool that the agent does not have."""
    definition = next((one for one in manifest.tools if one.name == call.tool), None)
    if definition is None:
        known = ", ".join(one.name for one in manifest.tools) or "none"
        path = f"$.calls[{index}].tool"
        raise InvalidInput(
            f"The agent {manifest.name!r} has no tool {call.tool!r}. It has: {known}.",
            errors=[{"path": path, "message": "is not a tool of the agent"}],
        )
    return ExternalCall(ToolCall(call_id=call.call_id, index=index, name=call.tool, args=call.args), definition)


def _origin(paused: SuspendedFramework) -> Origin:
    return Origin.model_validate(paused.model_dump(exclude={"state", "unseen"}))
