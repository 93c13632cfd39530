"""Routes of standing grants: list, confirm, revoke and reinstate. A decision makes one."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path

from sayso.core.policy.counters.readings import write_amount
from sayso.core.records.permissions import Grant
from sayso.features.permissions.text import write_grant
from sayso.wire.permissions import GrantList, GrantView
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
