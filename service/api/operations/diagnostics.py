"""Routes that check this Sayso and its rules."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from sayso.core.clock import now_ms
from sayso.core.policy.files.findings import Known
from service.api.routing.dependencies import Caller, OpenChannels, Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import ListFiles, RequestBody, View
from service.http.openapi import problems
from service.operations.diagnostics import diagnose
from service.operations.rule_checks import find_known

router = APIRouter(tags=["health"], route_class=SignedInRoute)


class FindingView(View):
    """The state of one part of Sayso."""

    part: str
    ok: bool
    message: str
    todo: str = Field(description="What to do; empty if the part works.")


class FindingList(BaseModel):
    """All findings."""

    findings: list[FindingView]


class RulesRequest(RequestBody):
    """The text of a rules file."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "version: 1\ndefault: deny\nrules: []\n"}]})

    text: str
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    lists: ListFiles = Field(default_factory=dict)


class RulesChecked(BaseModel):
    """Whether the rules are valid."""

    ok: bool
    rules: int
    version: str | None
    faults: list[str] = Field(description="All faults with their lines.")
    warnings: list[str] = Field(description="Valid parts of the rules that cannot work, as far as Sayso can tell.")


@router.get("/diagnostics", operation_id="getDiagnostics", responses=problems(401, 403))
async def diagnose_parts(_caller: Person, parts: Parts, channels: OpenChannels) -> FindingList:
    """Check the store, the clock, the workers, the rules and the channels; for people."""
    kinds = {name: channel.kind for name, channel in channels.by_name.items()}
    return FindingList(findings=[FindingView.model_validate(finding) async for finding in diagnose(parts, kinds)])


@router.post("/policy/check", operation_id="checkRules", responses=problems(400, 401, 415, 429))
async def check_rules(body: RulesRequest, caller: Caller, parts: Parts) -> RulesChecked:
    """Check rules without activating them. People also get warnings about reviewers and registered tools.

    A check that takes too long is stopped.
    """
    known = await find_known(parts) if caller.owner is None else Known(now_ms=now_ms())
    report = await parts.desk.evaluations.check_rules(body.text, body.file, known, lists=body.lists, caller=caller.name)
    return RulesChecked(
        ok=not report.faults,
        rules=report.rules,
        version=report.version,
        faults=list(report.faults),
        warnings=list(report.warnings),
    )
