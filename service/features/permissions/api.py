"""Routes of grants and mandates: confirm, revoke and reinstate grants; propose a plan, follow it and end it."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import ConfigDict, Field, model_validator

from sayso.core.clock import new_id
from sayso.core.policy.counters.readings import write_amount
from sayso.core.policy.engine import Policy
from sayso.core.records.decisions import ActorKind
from sayso.core.records.items import ItemDraft
from sayso.core.records.permissions import (
    MOST_PLAN_CHARS,
    MOST_TOOLS,
    Grant,
    Mandate,
    MandateState,
    Plan,
    PlannedCalls,
    check_plan_size,
)
from sayso.core.records.suspensions import RunRef, Status, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.schemas.bounds import check_size
from sayso.core.sentences.plans import write_plan
from sayso.core.text.invisible import write_signs
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.features.permissions.making import draft_from, name_mandate, name_suspension
from sayso.features.permissions.plans import Definitions, draft_mandate
from sayso.features.permissions.text import view_mandate, write_grant
from sayso.wire.rulebook import GrantList, GrantView, MandateList, MandateView
from service.core.auth.credentials import Principal, require_agent
from service.core.operations.people import find_who, identify_request
from service.core.wiring import Wiring
from service.edge.api.calls import DefinitionBody
from service.edge.api.dependencies import (
    Caller,
    IdempotencyKey,
    Parts,
    Person,
    PersonToken,
    Wait,
    find_agent,
    find_run,
    find_suspension,
)
from service.edge.api.routes import SignedInRoute, wait_for
from service.edge.http.openapi import ASKS, WAITS, WRITES, problems
from service.features.permissions.desk import Granting, is_ready, reinstate
from service.features.permissions.store import Trial, Use

router = APIRouter(prefix="/grants", tags=["grants"], route_class=SignedInRoute)

GrantId = Annotated[str, Path(min_length=1, max_length=100, examples=["gra_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


@router.get("", operation_id="listGrants", responses=problems(401, 403))
async def list_grants(caller: Person, parts: Parts) -> GrantList:
    """List grants with their use, also those that ended in the last month."""
    return GrantList(grants=await _describe(parts, await parts.feature(Granting).list_uses()))


@router.post("/{grant_id}/confirm", operation_id="confirmGrant", responses=WRITES)
async def confirm_grant(grant_id: GrantId, caller: Person, parts: Parts) -> GrantView:
    """Grant together with the people who did: it takes force when enough have. You must be a reviewer of its item.

    A grant that Sayso proposed can be granted when people have approved enough calls that it would have allowed.
    """
    await parts.feature(Granting).confirm(grant_id, caller.reviewer("api"))
    return await _read(parts, grant_id)


@router.post("/{grant_id}/revoke", operation_id="revokeGrant", responses=WRITES)
async def revoke_grant(grant_id: GrantId, caller: Person, parts: Parts) -> GrantView:
    """End a grant at once, also for calls that it allowed and that have not started. Every reviewer may."""
    await parts.feature(Granting).revoke(grant_id, caller.reviewer("api"))
    return await _read(parts, grant_id)


@router.post("/{grant_id}/reinstate", operation_id="reinstateGrant", responses=WRITES)
async def reinstate_grant(grant_id: GrantId, caller: Person, parts: Parts) -> GrantView:
    """Overrule the denial that suspends a learned grant, as a reviewer of its item. Read the denied call before.

    If another denial of a call that it covers is left, it stays suspended by that one.
    """
    await reinstate(parts, grant_id, caller.reviewer("api"))
    return await _read(parts, grant_id)


async def _read(parts: Wiring, grant_id: str) -> GrantView:
    (view,) = await _describe(parts, [await parts.feature(Granting).find_use(grant_id)])
    return view


async def _describe(parts: Wiring, uses: Sequence[Use[Grant]]) -> list[GrantView]:
    trials, now_ms = (
        await parts.feature(Granting).lessons.read_trials(use.grant for use in uses),
        await parts.feature(Granting).now_ms(),
    )
    return [_view(parts, use, trials.get(use.grant.id, Trial()), now_ms) for use in uses]


def _view(parts: Wiring, use: Use[Grant], trial: Trial, now_ms: int) -> GrantView:
    grant = use.grant
    tried = {**trial._asdict(), "would_allow": trial.asked, "unanswered": trial.unanswered}
    learned = dict(grant.learned) | tried | {"ready": is_ready(grant, trial)} if grant.learned is not None else None
    shown = {name: getattr(grant, name) for name in Grant.model_fields if name in GrantView.model_fields}
    return GrantView.model_validate(
        {
            **shown,
            "sentence": write_grant(grant),
            "state": grant.find_state(now_ms),
            "scope": grant.scope,
            "void": parts.feature(Granting).find_void(grant),
            "sum": write_amount(grant.sum.max) if grant.sum is not None else None,
            "at_ms": grant.at_ms,
            "until_ms": grant.until_ms,
            "granted_by": [granter.id for granter in grant.granters],
            "calls": use.calls,
            "total": write_amount(use.total),
            "last_used_at": use.last_ms,
            "revoked_at_ms": grant.revoked_at_ms,
            "learned": learned,
        }
    )


mandates = APIRouter(prefix="/mandates", tags=["grants"], route_class=SignedInRoute)

MandateId = Annotated[str, Path(min_length=1, max_length=100, examples=["man_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class PlannedCallsBody(PlannedCalls):
    """Calls of one tool of the plan."""

    definition: DefinitionBody | None = Field(
        default=None, description="The tool's definition, if you run the calls yourself; as with `mode: poll`."
    )


class MandateRequest(Plan):
    """A plan: the calls that the agent wants to make without being asked about each."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "thread_id": "invoices-november",
                    "title": "Pay the invoices of November",
                    "for_s": 3600,
                    "count": 20,
                    "sum": 900,
                    "tools": [
                        {"tool": "read_file", "definition": {}, "within": {"args.path": "/srv/invoices"}},
                        {
                            "tool": "send_money",
                            "definition": {},
                            "one_of": {"args.recipient": ["DE89370400440532013000", "GB29NWBK60161331926819"]},
                            "at_most": {"args.amount": 500},
                            "free": ["args.subject"],
                            "sum": {"of": "args.amount"},
                        },
                    ],
                }
            ]
        }
    )

    agent: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="A registered agent. Leave it out if you run the calls yourself; then it is the key's name.",
    )
    thread_id: str | None = Field(
        default=None, min_length=1, max_length=200, description="The conversation that it covers; by default a new one."
    )
    run_id: str | None = Field(
        default=None, min_length=1, max_length=100, description="One of your runs, if it covers that run alone."
    )
    tools: tuple[PlannedCallsBody, ...] = Field(min_length=1, max_length=MOST_TOOLS)

    @model_validator(mode="before")
    @classmethod
    def _check_size(cls, given: Any) -> Any:
        tools = given.get("tools") if isinstance(given, dict) else None
        if isinstance(tools, list):
            check_plan_size(tools)
        return given


@mandates.post("", status_code=201, operation_id="proposeMandate", responses=ASKS)
async def propose_mandate(
    body: MandateRequest, caller: Caller, parts: Parts, key: IdempotencyKey, token: PersonToken, response: Response
) -> MandateView:
    """Propose a plan. When people have approved its item, calls inside it run without asking, and all others ask.

    With `outside: deny` all others are denied. Such a plan is in force at once if it lets nothing run that the rules
    would ask about. Calls with `ask: true` are asked about as without the plan.

    Wait for the decision with `GET /mandates/{mandate_id}?wait=30s`. Rules must permit mandates with `mandates:`.
    """
    about = await find_run(parts, caller, body.run_id) if body.run_id is not None else None
    if about is not None and (about.status.ended or body.thread_id not in (None, about.thread_id)):
        raise InvalidInput(f"The run {about.id} has ended, or is of the thread {about.thread_id!r}. Correct run_id.")
    agent = body.agent or (about.agent if about is not None else caller.name)
    require_agent(caller, agent)
    definitions = await _find_definitions(parts, caller, agent, body)
    run_id, who = new_id("run"), await find_who(parts, caller, token)
    run = RunRef(
        id=run_id,
        agent=agent,
        owner=caller.name,
        thread_id=body.thread_id or (about.thread_id if about is not None else run_id),
        title=body.title,
        facts=caller.context,
        key_id=caller.key_id,
        key_maker=caller.key_maker,
        who=who,
    )
    item = await asyncio.to_thread(_draft_plan, parts.rules.policy(), run, body, definitions)
    request = await asyncio.to_thread(identify_request, body.model_dump(mode="json"), who) if key else None
    view = await _read_mandate(parts, (await parts.desk.propose(run, item, key, request)).record)
    response.headers["Location"] = f"/api/v1/mandates/{view.id}"
    return view


@mandates.get("", operation_id="listMandates", responses=problems(401, 403))
async def list_mandates(caller: Caller, parts: Parts) -> MandateList:
    """List approved mandates with their use, also those that ended in the last month. Agents see their own."""
    uses, now_ms = await parts.feature(Granting).mandates.list_uses(), await parts.feature(Granting).mandates.now_ms()
    own = [use for use in uses if caller.owner in (None, use.grant.owner)]
    return MandateList(mandates=[_view_mandate(parts, use, now_ms) for use in own])


@mandates.get("/{mandate_id}", operation_id="getMandate", responses=WAITS)
async def get_mandate(request: Request, mandate_id: MandateId, caller: Caller, parts: Parts, wait: Wait) -> MandateView:
    """Return a mandate, or its plan. `wait` delays the answer until the plan is decided or the time is over."""

    async def read() -> SuspensionRecord:
        return await _find_mandate(parts, caller, mandate_id)

    record = await wait_for(
        request,
        name_suspension(mandate_id),
        read,
        who=caller.name,
        done=lambda record: record.status is not Status.PENDING,
        wait_s=wait,
    )
    return await _read_mandate(parts, record)


@mandates.post("/{mandate_id}/revoke", operation_id="revokeMandate", responses=WRITES)
async def revoke_mandate(mandate_id: MandateId, caller: Caller, parts: Parts) -> MandateView:
    """End a mandate at once, also for calls that it allowed and that have not started.

    Every reviewer may, and the agent that proposed it, which can also withdraw a plan that waits.
    """
    record = await _find_mandate(parts, caller, mandate_id)
    by = caller.reviewer("api") if caller.kind is ActorKind.HUMAN else caller.actor("api")
    if record.status is not Status.PENDING:
        await parts.feature(Granting).mandates.revoke(mandate_id, by)
    elif caller.kind is ActorKind.HUMAN:
        raise Conflict("Nobody has decided this plan yet. Deny its item instead.")
    else:
        await parts.desk.withdraw(record.id, by)
    return await _read_mandate(parts, await _find_mandate(parts, caller, mandate_id))


async def _find_definitions(parts: Wiring, caller: Principal, agent: str, body: MandateRequest) -> Definitions:
    sent = [(entry.tool, entry.definition) for entry in body.tools if entry.definition is not None]
    if not sent:
        return {tool.name: tool for tool in (await find_agent(parts, agent)).tools}
    if agent != caller.name:
        raise InvalidInput("Workers register their tools. Send definitions only for calls that you run yourself.")
    definitions: dict[str, ToolDefinition] = {}
    for name, definition in sent:
        check_size(definition.parameters)
        tool = ToolDefinition(name=name, **definition.model_dump())
        if definitions.setdefault(name, tool) != tool:
            raise InvalidInput(f"The tool {name!r} has two definitions; send one.")
    return definitions


def _draft_plan(policy: Policy, run: RunRef, body: MandateRequest, definitions: Definitions) -> ItemDraft:
    outside: Any = {"agent": True, "thread_id": True, "run_id": True, "tools": {"__all__": {"definition"}}}
    plan = Plan.model_validate(body.model_dump(exclude=outside))
    return _show(draft_mandate(policy, run, plan, definitions, body.run_id or ""))


def _show(item: ItemDraft) -> ItemDraft:
    """Return the item with its plan in sentences, for cards and the command line; raises `InvalidInput` if too long."""
    body = write_signs(write_plan(item.mandate)) if item.mandate is not None else ""
    if len(body) > MOST_PLAN_CHARS:
        limit = f"{len(body):,} characters; the limit is {MOST_PLAN_CHARS:,}"
        raise InvalidInput(f"The plan is too long to read: {limit}. Name fewer calls, or shorter values.")
    return item.model_copy(update={"prompt": item.prompt.model_copy(update={"body": body})})


async def _find_mandate(parts: Wiring, caller: Principal, mandate_id: str) -> SuspensionRecord:
    unknown = NotFound(f"There is no mandate {mandate_id!r} for this credential.")
    record, _ = await find_suspension(parts, caller.owner, name_suspension(mandate_id), unknown)
    if record.items[:1] and record.items[0].mandate is not None and name_mandate(record.id) == mandate_id:
        return record
    raise unknown


async def _read_mandate(parts: Wiring, record: SuspensionRecord) -> MandateView:
    use = await parts.feature(Granting).mandates.find_use(name_mandate(record.id))
    if use is not None:
        return _view_mandate(parts, use, await parts.feature(Granting).mandates.now_ms())
    item = record.items[0]
    outcome = item.outcome
    state = MandateState.PROPOSED if record.status is Status.PENDING else MandateState.WITHDRAWN
    if outcome is not None:
        state = MandateState.ENDED if outcome.may_run else MandateState.DENIED
    assert item.mandate is not None  # noqa: S101  `_find_mandate` refuses other items
    mandate = draft_from(record, item, item.mandate, 0)
    return view_mandate(mandate, state, void=parts.feature(Granting).mandates.find_void(mandate))


def _view_mandate(parts: Wiring, use: Use[Mandate], now_ms: int) -> MandateView:
    mandate, void = use.grant, parts.feature(Granting).mandates.find_void(use.grant)
    state = MandateState(mandate.find_state(now_ms))
    return view_mandate(mandate, state, void=void, calls=use.calls, total=use.total, last_ms=use.last_ms)
