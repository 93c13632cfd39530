"""The route that says which rule decides a call, and why the others do not."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from sayso.core.canonical_json import JsonObject
from sayso.core.sentences.rules import describe_explanation
from sayso.errors import InvalidInput
from sayso.features.whatif.explaining import TrialCall
from service.api.routing.dependencies import Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody
from service.http.openapi import problems
from service.operations.rule_checks import read_manifests
from service.operations.rule_trials import read_past, try_call

router = APIRouter(tags=["health"], route_class=SignedInRoute)


class TrialRequest(RequestBody):
    """A call, an item whose call to try, or both: the call with the facts about the item's run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"call": {"tool": "refund", "args": {"amount": 250}}}]})

    call: TrialCall | None = None
    item: str | None = Field(default=None, max_length=200, description="A suspension's id, or `suspension/item`.")


class RuleTrial(BaseModel):
    """One rule tried on the call."""

    rule_id: str
    action: str
    match: str = Field(description="decides, matches, differs, unknown, disabled or shadow.")
    part: str = Field(description="The first part of the rule that the call does not meet, such as `tool`.")
    saw: JsonObject = Field(description="What the condition read, or what the call has for that part.")
    would: str | None = Field(description="The action of a shadow rule that would have decided.")
    sentence: str


class Explained(BaseModel):
    """The decision on the call, and every rule in the order of trial."""

    action: str
    effect: str = Field(description="What would happen to the call.")
    reason: str
    rule_id: str | None = Field(description="The rule that decides; null for the default, or in doubt.")
    rule_version: str
    error: str | None = Field(description="What could not be evaluated.")
    absolute: bool = Field(description="Whether nothing lifts the denial.")
    resembles: list[str] = Field(description="Names in rules that the tool's name resembles.")
    rules: list[RuleTrial]


@router.post("/policy/explain", operation_id="explainCall", responses=problems(400, 401, 403, 404, 415))
async def explain_call(body: TrialRequest, _caller: Person, parts: Parts) -> Explained:
    """Say which rule in force decides a call, and why the others do not. Nothing runs or is recorded."""
    if body.call is None and body.item is None:
        raise InvalidInput("There is nothing to try. Send a call, an item, or both.")
    past = await read_past(parts, body.item) if body.item is not None else None
    call = body.call
    if call is None:
        assert past is not None  # noqa: S101  checked above
        call = TrialCall(tool=past.item.tool.name, agent=past.record.run.agent, args=past.args)
    explanation, scrub = await try_call(parts, await read_manifests(parts), call, past)
    return Explained.model_validate(describe_explanation(explanation, scrub))
