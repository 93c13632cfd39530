"""The route by which an agent asks beforehand whether a call would be allowed, asked about or denied."""

from dataclasses import replace

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from sayso.core.clock import new_id
from sayso.core.records.decisions import Verdict
from sayso.core.records.suspensions import ResumeSpec, RunRef
from sayso.wire.rulebook import WouldView
from service.core.operations.people import find_who
from service.edge.api.calls import AskedBody, CallBody, define_call, describe_caller, find_registered
from service.edge.api.dependencies import Caller, Parts, PersonToken
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import ASKS

router = APIRouter(prefix="/policy", tags=["policy"], route_class=SignedInRoute)


class WouldRequest(AskedBody):
    """A call that may be asked later."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent": "demo", "call": {"tool": "refund", "args": {"amount": 250}}}]}
    )

    call: CallBody = Field(description="As `calls` of `POST /suspensions` has it.")


@router.post("/would", operation_id="judgeCall", responses=ASKS)
async def judge_call(body: WouldRequest, caller: Caller, parts: Parts, token: PersonToken) -> WouldView:
    """Say whether this call would be allowed, asked about or denied now. Nothing is recorded, counted or sent.

    Rules, reasons and names stay hidden. It counts against the same limits per minute as a request for approval. A call
    that an assessor rates is judged as if it were rated high.
    """
    polls = body.mode == "poll"
    manifest = (
        describe_caller(body, (body.call,), caller) if polls else await find_registered(parts, caller, body.agent)
    )
    run_id = new_id("run")
    run = RunRef(
        id=run_id,
        agent=manifest.name,
        owner=caller.name,
        thread_id=body.thread_id or run_id,
        facts={**manifest.context, **caller.context},
        claimed=body.context,
        key_id=caller.key_id,
        key_maker=caller.key_maker,
        who=await find_who(parts, caller, token),
    )
    call = replace(define_call(manifest, 0, body.call), known=not polls, step=body.step or 1)
    outcome = await parts.desk.would(run, call, ResumeSpec(mode=body.mode))
    if outcome is None:
        return WouldView(verdict="ask")
    return WouldView(verdict="deny" if outcome.verdict is Verdict.DENIED else "allow")
