"""Freeze tools, agents or everything, see what is frozen, lift it again."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path
from pydantic import BaseModel, ConfigDict, Field

from sayso.records.freezes import SCOPE_PATTERN, Freeze
from service.api.routing.dependencies import Admin, Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import Timestamp, View
from service.http.openapi import WRITES, problems
from service.operations.known_names import freeze_known

router = APIRouter(prefix="/freezes", tags=["freezes"], route_class=SignedInRoute)

FreezeId = Annotated[str, Path(min_length=1, max_length=100, examples=["frz_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class FreezeRequest(BaseModel):
    """What is to stand still, and why."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"scope": "tool:refund_payment", "reason": "Wrong amounts since noon"}]},
    )

    scope: str = Field(pattern=SCOPE_PATTERN, description="`all`, `agent:<name>` or `tool:<name>`.")
    reason: str = Field(default="", max_length=2000, description="Everybody is shown it.")
    confirm: bool = Field(
        default=False, strict=True, description="Freeze a name all the same that was never seen here."
    )


class UnfreezeRequest(BaseModel):
    """What becomes of the deadlines that were held."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"deadlines": "move"}]})

    deadlines: Literal["move", "pass"] = Field(
        default="move",
        description="`move`: they come later by the time that was lost. `pass`: only for a freeze of time, because the "
        "store's clock is right and they have really passed.",
    )


class FreezeView(View):
    """What is frozen: who did it, when, why, and when it was lifted. Of `time` it is a clock's doubt."""

    id: str
    scope: str
    reason: str
    by: str
    at: Timestamp = Field(validation_alias="at_ms")
    jumped_to: Timestamp | None = Field(
        validation_alias="jumped_to_ms", description="Of time: what the store's clock said next after `at`."
    )
    unfrozen_by: str | None
    unfrozen_at: Timestamp | None = Field(validation_alias="unfrozen_at_ms")

    @classmethod
    def of(cls, freeze: Freeze) -> "FreezeView":
        """Return the view of a freeze."""
        return cls.model_validate(freeze)


class FreezeList(BaseModel):
    """What is frozen now, the oldest first."""

    freezes: list[FreezeView]


@router.get("", operation_id="listFreezes", responses=problems(401, 403))
async def list_freezes(caller: Person, parts: Parts) -> FreezeList:
    """List what is frozen."""
    return FreezeList(freezes=[FreezeView.of(one) for one in await parts.freezes.in_force(fresh=True)])


@router.post("", status_code=201, operation_id="freeze", responses=WRITES)
async def freeze(body: FreezeRequest, caller: Admin, parts: Parts) -> FreezeView:
    """Let nothing new start within the scope, everywhere within a second. Frozen already, it stays as it is.

    A name that was never seen here is refused with `/problems/unknown-name`, which lists those `near` it, unless you
    `confirm` it.
    """
    by = caller.actor("api")
    return FreezeView.of(await freeze_known(parts, body.scope, body.reason, by, confirmed=body.confirm))


@router.post("/{freeze_id}/lift", operation_id="liftFreeze", responses=WRITES)
async def unfreeze(
    freeze_id: FreezeId, caller: Admin, parts: Parts, body: Annotated[UnfreezeRequest | None, Body()] = None
) -> FreezeView:
    """Let what waited go on at once; deadlines move by as long as they were held, unless they are to pass."""
    deadlines = body.deadlines if body is not None else "move"
    return FreezeView.of(await parts.freezes.unfreeze(freeze_id, caller.actor("api"), deadlines))
