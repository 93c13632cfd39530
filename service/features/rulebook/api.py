"""Routes of the rulebook's versions: read them, attest a file, and return to an earlier version."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field

from sayso.wire.models import ListFiles, RequestBody
from sayso.wire.rulebook import AttestationView, SpanView, VersionList, VersionText, VersionView
from service.edge.api.dependencies import Admin, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.features.rulebook.versions import VersionState, attest, list_versions, read_version, restore

router = APIRouter(prefix="/policy", tags=["policy"], route_class=SignedInRoute)

Version = Annotated[str, Path(min_length=1, max_length=100, examples=["0f3a9c1b2d4e5f60"])]


class AttestRequest(RequestBody):
    """The exact text of a file of rules."""

    text: str = Field(examples=["version: 1\ndefault: deny\nrules: []\n"])
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    lists: ListFiles = Field(default_factory=dict)


class RestoreRequest(RequestBody):
    """The version that is in force, so that none is replaced unseen."""

    replaces: str = Field(max_length=100, examples=["1f3a9c1b2d4e5f60"])


@router.get("/versions", operation_id="listRuleVersions", responses=problems(401, 403))
async def list_all(_caller: Person, parts: Parts) -> VersionList:
    """List the versions of the rules, when each was in force, and who attests them."""
    return VersionList(versions=[VersionView(**_view(state, parts)) for state in await list_versions(parts)])


@router.get("/versions/{version}", operation_id="getRuleVersion", responses=problems(401, 403, 404))
async def read_one(version: Version, _caller: Person, parts: Parts) -> VersionText:
    """Return a version of the rules with its text."""
    return view_text(await read_version(parts, version), parts)


@router.post("/attestations", operation_id="attestRules", responses=WRITES | problems(422, 429))
async def attest_rules(body: AttestRequest, caller: Admin, parts: Parts) -> VersionText:
    """Attest exactly these bytes. A file with enough attestations takes force where a process holds it."""
    return view_text(await attest(parts, body.text, body.file, caller.name, body.lists), parts)


@router.post("/versions/{version}/restore", operation_id="restoreRules", responses=WRITES | problems(404, 422))
async def restore_version(version: Version, body: RestoreRequest, caller: Admin, parts: Parts) -> VersionText:
    """Put a version that was in force before back in force; the one in force does not come back by itself."""
    await restore(parts, version, caller.name, body.replaces)
    return view_text(await read_version(parts, version), parts)


def view_text(state: VersionState, parts: Parts) -> VersionText:
    """Return the view of a version with its text."""
    return VersionText(**_view(state, parts), text=state.saved.text, lists=state.saved.lists)


def _view(state: VersionState, parts: Parts) -> dict[str, Any]:
    version = state.saved
    return {
        "version": version.version,
        "digest": version.digest,
        "file": version.file,
        "in_force": state.in_force,
        "withdrawn": state.withdrawn,
        "attested": state.attested,
        "needed": parts.settings.policy_attestations,
        "attestations": [AttestationView.model_validate(attestation) for attestation in state.attestations],
        "spans": [SpanView.model_validate(span) for span in state.spans],
    }
