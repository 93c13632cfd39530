"""Routes to freeze, unfreeze and list freezes."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path
from pydantic import ConfigDict, Field

from sayso.core.records.freezes import SCOPE_PATTERN
from sayso.wire.administration import FreezeList, FreezeView
from sayso.wire.models import RequestBody
from service.core.operations.known_names import freeze_known
from service.edge.api.dependencies import Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems

router = APIRouter(prefix="/freezes", tags=["freezes"], route_class=SignedInRoute)

FreezeName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=210,
        examples=["tool:refund_payment"],
        description="The id of a freeze, or what was frozen: `all`, `agent:<name>` or `tool:<name>`.",
    ),
]


class FreezeRequest(RequestBody):
    """The scope to freeze, and the reason."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"scope": "tool:refund_payment", "reason": "Wrong amounts since noon"}]}
    )

    scope: str = Field(pattern=SCOPE_PATTERN, description="`all`, `agent:<name>` or `tool:<name>`.")
    reason: str = Field(default="", max_length=2000, description="Shown to everyone.")
    confirm: bool = Field(default=False, strict=True, description="Freeze a name that was never seen here.")


class UnfreezeRequest(RequestBody):
    """What happens to the deadlines that the freeze held."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"deadlines": "move"}]})

    deadlines: Literal["move", "pass"] = Field(
        default="move",
        description="`move`: add the lost time to the deadlines. `pass`: only for a freeze of time; the store's "
        "clock is right, and the deadlines have passed.",
    )
    checked: str = Field(
        default="",
        max_length=2000,
        description="What was checked; required where the desk froze everything because the store went back.",
    )


@router.get("", operation_id="listFreezes", responses=problems(401, 403))
async def list_freezes(caller: Person, parts: Parts) -> FreezeList:
    """List the current freezes."""
    current = await parts.freezes.in_force(fresh=True)
    return FreezeList(freezes=[FreezeView.model_validate(freeze) for freeze in current])


@router.post("", status_code=201, operation_id="freeze", responses=WRITES)
async def freeze(body: FreezeRequest, caller: Person, parts: Parts) -> FreezeView:
    """Stop new calls in the scope everywhere within a second. Freezing twice changes nothing.

    A name that was never seen here is refused with `/problems/unknown-name`, which lists similar names in `near`.
    Send `confirm` to freeze it anyway.
    """
    by = caller.actor("api")
    return FreezeView.model_validate(await freeze_known(parts, body.scope, body.reason, by, confirmed=body.confirm))


@router.post("/{freeze_id:path}/unfreeze", operation_id="unfreeze", responses=WRITES)
async def unfreeze(
    freeze_id: FreezeName, caller: Person, parts: Parts, body: Annotated[UnfreezeRequest | None, Body()] = None
) -> FreezeView:
    """End a freeze. Waiting runs continue immediately, and deadlines move by the time they were held."""
    body, by = body or UnfreezeRequest(), caller.actor("api")
    return FreezeView.model_validate(await parts.freezes.unfreeze(freeze_id, by, body.deadlines, body.checked))
