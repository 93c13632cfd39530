"""Routes for calls of a run that is driven elsewhere: evaluate them, redeem their permits, report their outcomes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Response
from pydantic import ConfigDict, Field, JsonValue

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import new_id
from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Report
from sayso.core.records.suspensions import Origin, ResumeSpec, RunRef
from sayso.core.records.terms import LONGEST_WAIT_S, REPORT_WITHIN_S
from sayso.core.records.tools import NAME_CHARACTERS, ToolCall, ToolDefinition, ToolName
from sayso.core.schemas.bounds import check_size
from sayso.core.schemas.validators import settle_object
from sayso.core.transitions.client_execution import key_of
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.permits import approved_args
from sayso.errors import InvalidInput
from sayso.runner.agents import AgentManifest
from sayso.wire.models import RequestBody, SentTimestamp, moment
from sayso.wire.suspensions import RedeemedItem, SuspensionView
from service.core.auth.credentials import Principal, require_agent
from service.core.desk.suspending import Foreign
from service.core.operations.people import find_who, identify_request
from service.core.policy.evaluations import SuspendedFramework
from service.core.wiring import Wiring
from service.edge.api.dependencies import (
    Caller,
    Context,
    IdempotencyKey,
    ItemId,
    Parts,
    PersonToken,
    SuspensionId,
    find_agent,
    find_suspension,
)
from service.edge.api.routes import SignedInRoute
from service.edge.api.suspensions import view_suspension
from service.edge.http.openapi import ASKS, WRITES

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)


class DefinitionBody(RequestBody):
    """The definition of a tool that the agent runs itself."""

    description: str = Field(default="", max_length=20_000)
    parameters: JsonObject = Field(default={"type": "object"}, description="A JSON Schema without external references.")
    idempotent: bool = Field(
        default=False, strict=True, description="Whether a repeated call with the same key has no further effect."
    )


class CallBody(RequestBody):
    """One tool call."""

    tool: ToolName = Field(description=f"A tool of the agent; its name has {NAME_CHARACTERS}.")
    args: JsonObject = Field(default={}, description="All arguments.")
    definition: DefinitionBody | None = Field(
        default=None, description="The tool's definition; required with `mode: poll`, refused otherwise."
    )
    call_id: str = Field(default="", max_length=200, description="The agent's id of the call.")
    revises: str | None = Field(
        default=None,
        max_length=200,
        description="The item of the agent, as `{suspension_id}/{item_id}`, of which this is a new version, because a "
        "reviewer requested changes. Without one, the last such item of its thread.",
    )


class AskedBody(RequestBody):
    """Who calls a tool, and in which circumstances: what rules know beside the call itself."""

    agent: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="A registered agent; `GET /api/v1/agents` lists them. With `mode: poll` it is the key's name.",
    )
    mode: Literal["worker", "poll"] = Field(
        default="worker",
        description="Who runs approved calls: a worker, or with `poll` you, after `POST …/items/{item_id}/redeem`.",
    )
    thread_id: str | None = Field(default=None, min_length=1, max_length=200, description="Defaults to the run's id.")
    context: Context = Field(default={}, description="Unverified context. Rules read it as `claimed`.")
    step: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=1_000_000,
        description="The number of the model's turn, from 1. Sayso also counts turns; the higher number applies.",
    )


class SuspensionRequest(AskedBody):
    """Calls to evaluate together. A worker, or the client, runs approved calls once."""

    model_config = ConfigDict(
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
        }
    )

    calls: tuple[CallBody, ...] = Field(min_length=1, max_length=50)
    title: str = Field(default="", max_length=200, description="The title for reviewers.")
    tags: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = Field(default=(), max_length=20)
    coverage: Literal["all", "any"] = Field(
        default="all", description="Whether all items must be decided, or one is enough."
    )
    expires_at: SentTimestamp | None = Field(
        default=None,
        description="When answers no longer count for you, in RFC 3339: the calls are denied then, if not by a rule "
        "before. Deadlines do not move beyond it.",
    )
    on_deny: Literal["continue", "degrade", "fail"] = Field(
        default="continue", description="What a denial means for the other calls: they run, or all are skipped."
    )
    again: bool = Field(
        default=False,
        strict=True,
        description="With `mode: poll` and an Idempotency-Key: ask once more if the key's item ended by time, because "
        "nobody decided it or its approved call did not start.",
    )
    framework_run: SuspendedFramework | None = Field(
        default=None, description="The suspended run of a framework; a worker resumes it after the decisions."
    )


@router.post("", status_code=201, operation_id="createSuspension", responses=ASKS)
async def create_suspension(
    body: SuspensionRequest, caller: Caller, parts: Parts, key: IdempotencyKey, token: PersonToken, response: Response
) -> SuspensionView:
    """Evaluate calls. Rules allow or deny them immediately, or suspend them until people decide.

    A worker then runs the approved calls. Wait for the decisions with `GET /suspensions/{suspension_id}?wait=30s`, and
    for the results with `GET /runs/{run_id}?wait=30s`. With `mode: poll` you run the calls yourself, and the same
    Idempotency-Key leads to the same calls as long as they are stored. If anything but tools and arguments changed,
    calls that have not started are asked again, in a suspension that follows the withdrawn one.
    """
    polls = body.mode == "poll"
    if body.again and (key is None or not polls):
        raise InvalidInput("With again a key's item is asked once more. Send an Idempotency-Key and mode 'poll'.")
    if not polls and any(call.definition is not None for call in body.calls):
        raise InvalidInput("Workers register their tools. Send a definition only with mode 'poll'.")
    if polls and body.framework_run is not None:
        raise InvalidInput("With mode 'poll' no worker resumes a run; remove framework_run.")
    manifest = describe_caller(body, body.calls, caller) if polls else await find_registered(parts, caller, body.agent)
    within_s = None if body.expires_at is None else await _measure_left_s(parts, body.expires_at)
    calls = [
        replace(define_call(manifest, index, call), known=not polls, step=body.step or 1, within_s=within_s)
        for index, call in enumerate(body.calls)
    ]
    foreign = None
    if body.framework_run is not None:
        limit, evaluations = parts.settings.state_limit_bytes, parts.desk.evaluations
        state = await evaluations.seal_state(manifest, body.framework_run, limit, caller=caller.name)
        origin = Origin.model_validate(body.framework_run.model_dump(exclude={"state", "unseen"}))
        foreign = Foreign(origin, state)
    run_id, who = new_id("run"), await find_who(parts, caller, token)
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
        key_maker=caller.key_maker,
        who=who,
    )
    saved = await parts.desk.suspend(
        run,
        calls,
        ResumeSpec(mode=body.mode, resumer=_find_resumer(body, manifest), coverage=body.coverage),
        body.on_deny,
        key=key,
        request=identify_request(_identify(body), who) if key else None,
        foreign=foreign,
        again=body.again,
    )
    response.headers["Location"] = f"/api/v1/suspensions/{saved.record.id}"
    return view_suspension(saved.record, await parts.freezes.in_force(), run.owner)


def _identify(body: SuspensionRequest) -> JsonObject:
    """Return what makes a request the same as an earlier one; older releases had no `expires_at` or `revises`."""
    dumped = body.model_dump(mode="json", exclude={"again"})
    for call in dumped["calls"]:
        if call["revises"] is None:
            del call["revises"]
    return {name: value for name, value in dumped.items() if (name, value) != ("expires_at", None)}


async def _measure_left_s(parts: Wiring, expires_at: datetime) -> int:
    """Return the whole seconds until then."""
    left_s = (int(expires_at.timestamp() * 1000) - await parts.schedule.now_ms()) // 1000
    if left_s < 1:
        raise _misfit("expires_at has passed. Ask with a later time.", "$.expires_at", "has passed; send a later time")
    return left_s


def _find_resumer(body: SuspensionRequest, manifest: AgentManifest) -> str:
    if body.mode == "poll":
        return "poll"
    return manifest.origin.resumer if body.framework_run is not None else "calls"


async def find_registered(parts: Wiring, caller: Principal, name: str | None) -> AgentManifest:
    """Return the manifest of a registered agent for which the caller may ask; raises `InvalidInput`, `NotAllowed`."""
    if name is None:
        why = "$.agent is missing. Name a registered agent, or run the calls yourself with mode 'poll'."
        raise _misfit(why, "$.agent", "is missing; add it")
    require_agent(caller, name)
    return await find_agent(parts, name)


def describe_caller(body: AskedBody, calls: Sequence[CallBody], caller: Principal) -> AgentManifest:
    """Return the manifest of an agent that runs the calls itself; raises `InvalidInput`."""
    if body.agent not in (None, caller.name):
        why = f"With mode 'poll' the agent is {caller.name!r}, the name of the key; leave agent out."
        raise _misfit(why, "$.agent", "is not the name of this key")
    tools: dict[str, ToolDefinition] = {}
    for index, call in enumerate(calls):
        if call.definition is None:
            path = f"$.calls[{index}].definition"
            why = f"{path} is missing. Mode 'poll' needs the definition of every tool."
            raise _misfit(why, path, "is missing; add it")
        check_size(call.definition.parameters)
        definition = ToolDefinition(name=call.tool, **call.definition.model_dump())
        if tools.setdefault(call.tool, definition) != definition:
            raise InvalidInput(f"The tool {call.tool!r} has two definitions; send one.")
    return AgentManifest(
        name=caller.name,
        description="",
        approval_denial_policy="continue",  # the request says what a denial means
        tools=tuple(tools.values()),
        digest=digest_json([tool.digest for tool in tools.values()]),
    )


def define_call(manifest: AgentManifest, index: int, call: CallBody) -> ExternalCall:
    """Return a call with its tool's definition; raises `InvalidInput` for a tool that the agent does not have."""
    definition = next((tool for tool in manifest.tools if tool.name == call.tool), None)
    if definition is None:
        known = ", ".join(tool.name for tool in manifest.tools) or "none"
        why = f"The agent {manifest.name!r} has no tool {call.tool!r}. It has: {known}."
        raise _misfit(why, f"$.calls[{index}].tool", "is not a tool of the agent")
    args = settle_object(definition.parameters, call.args)
    made = ToolCall(call_id=call.call_id, index=index, name=call.tool, args=args)
    return ExternalCall(made, definition, revises=call.revises or "")


def _misfit(why: str, path: str, fault: str) -> InvalidInput:
    return InvalidInput(why, errors=[{"path": path, "message": fault}])


execution = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)


class RedeemRequest(RequestBody):
    """The time in which you report the outcome."""

    report_within_s: int = Field(default=REPORT_WITHIN_S, strict=True, ge=1, le=LONGEST_WAIT_S)


class OutcomeRequest(RequestBody):
    """The outcome of a call that you ran."""

    success: bool = Field(strict=True)
    output: JsonValue = Field(default=None, description="The result of the call.")
    error: str | None = Field(default=None, max_length=4000, description="Why the call failed.")


@execution.post("/{suspension_id}/items/{item_id}/redeem", operation_id="redeemItem", responses=WRITES)
async def redeem_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
    body: Annotated[RedeemRequest | None, Body()] = None,
) -> RedeemedItem:
    """Redeem the permit of a call once, before the call starts. Only for suspensions with `mode: poll`.

    The Idempotency-Key is required and names the process that runs the call: choose a new key for every process. The
    same key gets the same answer again; any other key gets 409 `/problems/already-redeemed`.
    """
    await find_suspension(parts, caller.name, suspension_id)
    holder = _require(key)
    revocations = await parts.revocation_cache.find()
    within_s = (body or RedeemRequest()).report_within_s
    saved = await parts.desk.client_redeem(suspension_id, item_id, holder, revocations, within_s)
    item = find_item(saved.record, item_id)
    permit = item.permit
    assert permit is not None  # noqa: S101  client_redeem() has set it
    return RedeemedItem(
        suspension_id=suspension_id,
        item_id=item_id,
        tool=item.tool.name,
        args=approved_args(item),
        idempotency_key=key_of(saved.record, item),
        attempt=permit.attempt,
        redeemed_at=moment(permit.redeemed_at_ms),
        report_by=moment(permit.report_by_ms),
    )


@execution.post("/{suspension_id}/items/{item_id}/outcome", operation_id="reportOutcome", responses=WRITES)
async def report_outcome(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: OutcomeRequest,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
) -> SuspensionView:
    """Report the outcome of a call with the Idempotency-Key of its redemption. The run ends with its last outcome."""
    await find_suspension(parts, caller.name, suspension_id)
    report = Report(success=body.success, output=body.output, error=body.error, at_ms=0)
    saved = await parts.desk.conclude(suspension_id, item_id, _require(key), report)
    return view_suspension(saved.record, await parts.freezes.in_force(), caller.owner)


@execution.post("/{suspension_id}/items/{item_id}/in-doubt", operation_id="markInDoubt", responses=WRITES)
async def mark_item_in_doubt(
    suspension_id: SuspensionId, item_id: ItemId, caller: Caller, parts: Parts
) -> SuspensionView:
    """Ask people about a redeemed call whose result is unknown.

    Returns the suspension with the new item. Repeating the request returns its current state.
    """
    await find_suspension(parts, caller.name, suspension_id)
    saved = await parts.desk.mark_in_doubt(suspension_id, item_id)
    return view_suspension(saved.following or saved.record, await parts.freezes.in_force(), caller.owner)


def _require(key: str | None) -> str:
    if key is None:
        raise InvalidInput("The Idempotency-Key is missing. It names the process that runs the call: send one.")
    return key
