"""Say whether the parts of this Sayso work, and whether rules that are to be put in force can be used."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from sayso.policy.findings import Known
from service.api.routing.dependencies import Caller, Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import View
from service.diagnostics import diagnose
from service.http.openapi import problems
from service.policy.checking import find_known

router = APIRouter(tags=["health"], route_class=SignedInRoute)


class FindingView(View):
    """One part of Sayso as it stands."""

    part: str
    ok: bool
    message: str
    todo: str = Field(description="What to do; empty where all is well.")


class FindingList(BaseModel):
    """Every part that the service can see."""

    findings: list[FindingView]


class RulesRequest(BaseModel):
    """Rules as they stand in their file."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"text": "version: 1\ndefault: deny\nrules: []\n"}]},
    )

    text: str
    file: str = Field(default="policy.yaml", max_length=200, description="What to call it where faults are told.")


class RulesChecked(BaseModel):
    """Whether the rules could be put in force."""

    ok: bool
    rules: int
    version: str | None
    faults: list[str] = Field(description="Every fault, each with its line.")
    warnings: list[str] = Field(description="What can be put in force and still cannot work, as far as it is known.")


@router.get("/examination", operation_id="diagnose", responses=problems(401, 403))
async def diagnose_parts(_caller: Person, parts: Parts) -> FindingList:
    """Look at the store, the clock, the workers, the rules and the channels; for people."""
    return FindingList(findings=[FindingView.model_validate(one) async for one in diagnose(parts)])


@router.post("/policy/check", operation_id="checkRules", responses=problems(400, 401, 415, 429))
async def check_rules(body: RulesRequest, caller: Caller, parts: Parts) -> RulesChecked:
    """Say whether these rules can be used, and to people what in them cannot work.

    Nothing is put in force, and a check that takes too long is ended.
    """
    known = await find_known(parts) if caller.owner is None else Known()
    found = await parts.desk.evaluations.check_rules(body.text, body.file, known, caller=caller.name)
    return RulesChecked(
        ok=not found.faults,
        rules=found.rules,
        version=found.version,
        faults=list(found.faults),
        warnings=list(found.warnings),
    )
