"""Routes of candidates in shadow: whole files of rules that judge every new call without effect."""

from typing import Annotated, Self

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field, model_validator

from service.api.policy.replays import Replays, ReplayView, view_replay
from service.api.policy.versions import VersionText, view_text
from service.api.routing.dependencies import Admin, Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import ListFiles, RequestBody, Timestamp, View
from service.http.openapi import WRITES, problems
from service.operations.rulebook.shadows import (
    begin_file_shadow,
    begin_shadow,
    end_shadow,
    promote_shadow,
    read_shadows,
    report_shadow,
)
from service.operations.rulebook.versions import read_version

router = APIRouter(prefix="/policy/shadow", tags=["policy"], route_class=SignedInRoute)

Version = Annotated[str, Path(min_length=1, max_length=100, examples=["0f3a9c1b2d4e5f60"])]


class BeginShadow(RequestBody):
    """A version that is kept, or the exact text of a file of rules; one of both."""

    version: str | None = Field(default=None, max_length=100, examples=["0f3a9c1b2d4e5f60"])
    text: str | None = Field(default=None, examples=["version: 1\ndefault: deny\nrules: []\n"])
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    lists: ListFiles = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.version is None) == (self.text is None):
            raise ValueError("send either the version or the text of the candidate")
        return self


class ReportShadow(RequestBody):
    """The candidate to report on."""

    version: str | None = Field(default=None, max_length=100, description="By default that in shadow, else the last.")
    sum: str | None = Field(
        default=None,
        max_length=200,
        description="The argument to sum, such as `args.amount`; by default the first that the rules compare.",
    )


class PromoteShadow(RequestBody):
    """The version that is in force, so that none is replaced unseen."""

    replaces: str = Field(max_length=100, examples=["1f3a9c1b2d4e5f60"])


class ShadowView(View):
    """A candidate, and when it judged calls in shadow."""

    version: str
    digest: str = Field(description="The SHA-256 of its bytes.")
    file: str
    by: str
    start: Timestamp = Field(validation_alias="began_ms")
    end: Timestamp | None = Field(validation_alias="ended_ms", description="Null while it is in shadow.")
    ended_by: str


class ShadowsView(BaseModel):
    """The candidate in shadow, and those before it."""

    current: ShadowView | None = Field(description="Null if none is in shadow.")
    ended: list[ShadowView] = Field(description="The latest first.")


@router.get("", operation_id="getShadow", responses=problems(401, 403))
async def read_shadow(_caller: Person, parts: Parts) -> ShadowsView:
    """Return the candidate in shadow, and those before it."""
    state = await read_shadows(parts)
    return ShadowsView(
        current=ShadowView.model_validate(state.current) if state.current is not None else None,
        ended=[ShadowView.model_validate(shadow) for shadow in state.ended],
    )


@router.post("", operation_id="beginShadow", responses=WRITES | problems(404, 422, 429))
async def begin(body: BeginShadow, caller: Admin, parts: Parts) -> VersionText:
    """Put a candidate in shadow: it judges every new call beside the rules in force, without effect."""
    if body.text is not None:
        return view_text(await begin_file_shadow(parts, body.text, body.file, caller.name, body.lists), parts)
    version = body.version or ""
    await begin_shadow(parts, version, caller.name)
    return view_text(await read_version(parts, version), parts)


@router.post("/report", operation_id="reportShadow", status_code=202, responses=WRITES | problems(403, 404, 429))
async def report(body: ReportShadow, caller: Admin, parts: Parts, replays: Replays, response: Response) -> ReplayView:
    """Count what a candidate would have done beside what was done and what people decided; read it as a replay."""
    replay = await report_shadow(parts, replays, caller.name, body.version, body.sum)
    response.headers["Location"] = f"/api/v1/policy/replays/{replay.id}"
    return view_replay(replay)


@router.post("/{version}/end", operation_id="endShadow", status_code=204, responses=WRITES | problems(403))
async def end(version: Version, caller: Admin, parts: Parts) -> None:
    """End the candidate in shadow. What it said stays in the audit trail."""
    await end_shadow(parts, version, caller.name)


@router.post("/{version}/promote", operation_id="promoteShadow", responses=WRITES | problems(404, 422))
async def promote(version: Version, body: PromoteShadow, caller: Admin, parts: Parts) -> VersionText:
    """Put the candidate in force, if enough people attest its bytes; the version it replaces is withdrawn."""
    await promote_shadow(parts, version, caller.name, body.replaces)
    return view_text(await read_version(parts, version), parts)
