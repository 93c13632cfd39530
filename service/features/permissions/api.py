"""Routes of standing grants: list, confirm, revoke and reinstate. A decision makes one."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from sayso.core.policy.counters.readings import write_amount
from sayso.core.records.permissions import Grant, GrantScope, GrantState
from sayso.features.permissions.text import write_grant
from sayso.wire.items import ConstraintView
from sayso.wire.models import Timestamp, View
from service.core.wiring import Wiring
from service.edge.api.dependencies import Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.features.permissions.desk import Granting, is_ready
from service.features.permissions.lessons import Trial
from service.features.permissions.store import Use
from service.features.permissions.ticks import reinstate

router = APIRouter(prefix="/grants", tags=["grants"], route_class=SignedInRoute)

GrantId = Annotated[str, Path(min_length=1, max_length=100, examples=["gra_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class LearnedView(View):
    """Where a proposed grant comes from, and what it would have allowed on probation."""

    approvals: int = Field(description="How many like calls people had approved when it was proposed.")
    proposed_at: Timestamp = Field(validation_alias="proposed_at_ms")
    probation: int = Field(description="How many calls that it would have allowed people must approve.")
    ready: bool = Field(description="Whether people have approved so many, so that it can be put in force.")
    would_allow: int = Field(description="The calls that it would have allowed. How people decided them:")
    approved: int
    edited: int
    denied: int
    unanswered: int = Field(description="Nobody decided them, or not yet.")


class DenialView(View):
    """The denial that suspended a learned grant."""

    by: str
    at: Timestamp = Field(validation_alias="at_ms")
    suspension_id: str
    item_id: str


class OverruledDenialView(View):
    """A denial after which a person has reinstated a learned grant."""

    denial: DenialView
    by: str
    at: Timestamp = Field(validation_alias="at_ms")


class GrantView(View):
    """A grant and its use."""

    id: str
    sentence: str = Field(description="Which calls run without asking, how often and until when.")
    state: GrantState
    void: bool = Field(description="Whether its rule is gone or changed, so that it lets nothing run.")
    rule_id: str
    agent: str
    owner: str
    tool: str
    scope: GrantScope = Field(
        description="`none`: calls without arguments. `exact`: with those of `constraints` and `free`, and all others "
        "as in the granted call. `any`: with any others, too."
    )
    constraints: tuple[ConstraintView, ...]
    free: tuple[str, ...] = Field(description="Arguments that may have any value or be missing; `args` for all.")
    count: int | None
    sum: str | None = Field(description="The most in sum, as a number.")
    at: Timestamp = Field(validation_alias="at_ms")
    until: Timestamp = Field(validation_alias="until_ms")
    people: int = Field(description="How many people must grant it before it is in force.")
    granted_by: list[str]
    reason: str
    offered: bool = Field(description="Whether a denial offered it; it then lets one call run.")
    suspension_id: str
    item_id: str
    calls: int = Field(description="The calls that it has let run, and those it holds a place for.")
    total: str = Field(description="Their sum, as a number.")
    last_used_at: Timestamp | None
    revoked_by: str | None
    revoked_at: Timestamp | None = Field(validation_alias="revoked_at_ms")
    learned: LearnedView | None = Field(description="Set if Sayso proposed it.")
    denial: DenialView | None = Field(description="The one that suspends it.")
    overruled: list[OverruledDenialView] = Field(description="The earlier ones, after which people reinstated it.")


class GrantList(View):
    """Grants of the last month, the latest first."""

    grants: list[GrantView]


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
