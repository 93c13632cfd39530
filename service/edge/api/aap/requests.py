"""Routes for instances: create, read and cancel requests, consume approvals, report outcomes."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from sayso.core.records.decisions import Actor, ActorKind, Report
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import ResumeSpec, Status, SuspensionRecord
from sayso.errors import AlreadyRedeemed, Conflict, Frozen, InvalidInput, NotFound, Withdrawn
from service.core.desk.suspending import Foreign
from service.core.store.announcements import closed_at_ms
from service.core.store.instances import Instance
from service.core.wiring import Wiring
from service.edge.api.aap import views
from service.edge.api.aap.callers import Id, InstanceRoute, Key, Requester, find_instance
from service.edge.api.aap.models import DURATION, NewOutcome, NewRequest, RequestView, read_duration, write_exactly
from service.edge.api.aap.problems import Refusal, problems, replays
from service.edge.api.aap.views import ADAPTER
from service.edge.api.dependencies import Parts, find_suspension
from service.edge.api.routes import wait_for

router = APIRouter(prefix="/v1/requests", tags=["requests"], route_class=InstanceRoute)

LONGEST_WAIT_S = 30
REPORT_WITHIN_S = 7 * 86_400  # time to report the outcome of a consumed call; the protocol does not require a report
_ITEM = "i1"

Wait = Annotated[
    str,
    Query(
        pattern=DURATION,
        max_length=20,
        description=f"How long to wait for the outcome, at most {LONGEST_WAIT_S}s.",
        examples=["30s"],
    ),
]


@router.post(
    "",
    status_code=201,
    operation_id="createRequest",
    response_model=RequestView,
    responses=replays(RequestView, "The request was repeated: its current state", 401, 403, 409),
)
async def create_request(request: Request, body: NewRequest, caller: Requester, parts: Parts, key: Key) -> Response:
    """Request approval of a call. Rules may decide it immediately."""
    raw = await request.body()
    foreign = Foreign(
        origin=views.ORIGIN,
        state=seal_state(raw),
        fit=partial(views.fit_draft, read_duration(body.timeout)),
        kept_ms=views.KEPT_MS,
        events=views.describe_reasoning(body),
    )
    saved = await parts.desk.suspend(
        views.draft_run(caller, body),
        [views.draft_call(body)],
        ResumeSpec(mode="poll", resumer=ADAPTER, endpoint_id=caller.id, notifies=caller.delivery is not None),
        key=key,
        request=write_exactly(raw),
        foreign=foreign,
    )
    return await _show(parts, await _expire(parts, saved.record, saved.now_ms), 200 if saved.repeated else 201)


@router.get("/{id}", operation_id="getRequest", response_model=RequestView, responses=problems(401, 403, 404, 409))
async def get_request(request: Request, id_: Id, caller: Requester, parts: Parts, wait: Wait = "") -> Response:
    """Return a request. `wait` delays the answer until it has an outcome or the time is over."""

    async def read() -> SuspensionRecord:
        return await _find(parts, caller, id_)

    record = await wait_for(
        request,
        (await read()).id,
        read,
        who=caller.owner,
        done=lambda record: closed_at_ms(record) is not None,
        wait_s=min(LONGEST_WAIT_S, read_duration(wait)) if wait else 0,
        identify=find_instance,
    )
    return await _show(parts, record)


@router.delete(
    "/{id}", operation_id="cancelRequest", response_model=RequestView, responses=problems(401, 403, 404, 409)
)
async def cancel_request(id_: Id, caller: Requester, parts: Parts) -> Response:
    """Cancel a pending request. A decision is final."""
    record = await _find(parts, caller, id_)
    saved = await parts.desk.withdraw(record.id, Actor(id=caller.owner, kind=ActorKind.AGENT, channel=ADAPTER))
    return await _show(parts, saved.record)


@router.post(
    "/{id}/consume", operation_id="consumeApproval", response_model=RequestView, responses=problems(401, 403, 404, 409)
)
async def consume_approval(request: Request, id_: Id, caller: Requester, parts: Parts, key: Key) -> Response:
    """Consume the approval once, immediately before the call starts."""
    if await request.body():
        raise InvalidInput("This request has no body. Send none.")
    record = await _find(parts, caller, id_)
    revocations = await parts.revocation_cache.find()
    try:
        saved = await parts.desk.client_redeem(record.id, _ITEM, key, revocations, REPORT_WITHIN_S)
    except (AlreadyRedeemed, Frozen, Withdrawn):
        raise
    except Conflict as error:
        raise _refuse_consumption(record, error) from error
    return await _show(parts, saved.record)


@router.post(
    "/{id}/outcome", operation_id="reportOutcome", response_model=RequestView, responses=problems(401, 403, 404, 409)
)
async def report_outcome(body: NewOutcome, id_: Id, caller: Requester, parts: Parts) -> Response:
    """Report the outcome of a consumed call. Repeating the report changes nothing; a different one is refused."""
    record = await _find(parts, caller, id_)
    permit = record.items[0].permit
    if permit is None:
        raise Refusal(409, "not_consumed", "The approval was not consumed, so there is no outcome to report.")
    report = Report(success=body.status == "succeeded", error=body.note, at_ms=0)
    try:
        saved = await parts.desk.conclude(record.id, _ITEM, None, report)
    except Conflict as error:
        code = "outcome_conflict" if permit.report is not None else "outcome_too_late"
        raise Refusal(409, code, error.message) from error
    return await _show(parts, saved.record)


async def _find(parts: Wiring, caller: Instance, request_id: str) -> SuspensionRecord:
    unknown = NotFound(f"There is no request {request_id} for this credential.")
    suspension_id = f"sus_{request_id.replace('-', '')}"
    return await _expire(parts, *await find_suspension(parts, caller.owner, suspension_id, unknown))


async def _expire(parts: Wiring, record: SuspensionRecord, now_ms: int) -> SuspensionRecord:
    late = record.status is Status.PENDING and (record.deadline_at_ms or 0) <= now_ms
    return (await parts.desk.tick(record.id)).record if late else record


async def _show(parts: Wiring, record: SuspensionRecord, status: int = 200) -> Response:
    # Every request is saved with its submitted text, until its contents are erased.
    submitted = await parts.runs.state(record.run.id, record.state) if record.state else views.write_erased(record)
    return Response(views.write_request(record, submitted), status, media_type="application/json")


def _refuse_consumption(record: SuspensionRecord, error: Conflict) -> Refusal:
    if views.status_of(record) != "approved":
        return Refusal(
            409, "not_approved", f"The request is {views.status_of(record)}; there is no approval to consume."
        )
    if record.items[0].permit is None and record.status is not Status.CANCELLED:
        return Refusal(409, "approval_expired", error.message)
    return Refusal(409, "approval_withdrawn", error.message)
