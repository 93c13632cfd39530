"""Pages of the rulebook's versions: when each was in force, who attests it, and the return to an earlier one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from sayso.core.policy.engine import Policy
from sayso.core.sentences.rules import describe_default, describe_rule
from sayso.core.text.language import _
from sayso.errors import SaysoError
from sayso.features.whatif.diff_text import list_differences
from sayso.features.whatif.diffs import compare_rulebooks
from service.auth.reviewers import require_role
from service.operations.rulebook.versions import (
    VersionState,
    attest_version,
    describe_held_back,
    list_versions,
    read_version,
    restore,
)
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_session, describe_refusal, read_form
from service.web.pages import show
from service.web.sessions import SignedIn, Visitor, wiring_of

_PAGE = "pages/rule_version.html"

router = APIRouter(route_class=RecordedRoute)


@dataclass(frozen=True)
class VersionPage:
    """A version, its rules in words, and how it differs from `beside`, the version in force or the one before."""

    state: VersionState
    words: Sequence[str]
    beside: str
    differences: Sequence[str]
    in_force: str
    mine: bool


@router.get("/rules/-/versions")
async def read_all(request: Request, visitor: SignedIn) -> Response:
    """Show the versions, the last saved first."""
    wiring = wiring_of(request)
    held = wiring.rules.held_back
    return await show(
        request,
        visitor,
        "pages/rule_versions.html",
        title=_("Versions of the rules"),
        versions=await list_versions(wiring),
        needed=wiring.settings.policy_attestations,
        held=" ".join(describe_held_back(held)) if held is not None else "",
    )


@router.get("/rules/-/versions/{version}")
async def read_one(request: Request, visitor: SignedIn, version: str) -> Response:
    """Show one version: the rules as they were, when they were in force, and who attests them."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, version))


@router.post("/rules/-/versions/{version}")
async def change(request: Request, visitor: SignedIn, version: str) -> Response:
    """Attest the bytes of a version, or put it back in force."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        require_role(visitor.principal.roles, "admin")
        await _act(request, visitor, version, post)
    except SaysoError as error:
        context = {**await _gather(request, visitor, version), "sentence": describe_refusal(error)}
        show_page_again(request, _PAGE, visitor=visitor, **context)
        raise
    return RedirectResponse(f"/rules/-/versions/{version}", 303)


async def _act(request: Request, visitor: Visitor, version: str, post: Post) -> None:
    wiring = wiring_of(request)
    if post.get("act") == "restore":
        await restore(wiring, version, visitor.name, post.get("replaces", ""))
    else:
        await attest_version(wiring, version, post.get("digest", ""), visitor.name)


async def _gather(request: Request, visitor: Visitor, version: str) -> dict[str, Any]:
    wiring = wiring_of(request)
    state, others = await read_version(wiring, version), await list_versions(wiring)
    return {
        "title": _("Version of the rules"),
        "sentence": "",
        "page": await asyncio.to_thread(_describe, state, others, visitor.name),
        "needed": wiring.settings.policy_attestations,
    }


def _describe(state: VersionState, others: Sequence[VersionState], visitor: str) -> VersionPage:
    current = next((other for other in others if other.in_force), None)
    beside = _find_before(state, others) if state.in_force else current
    mine, other = _parse(state), _parse(beside) if beside is not None else None
    words = [*(f"{rule.rule_id}: {describe_rule(rule)}" for rule in mine.rules), describe_default(mine)] if mine else []
    differences = list_differences(compare_rulebooks(other, mine)) if mine and other else []
    return VersionPage(
        state=state,
        words=words,
        beside=beside.saved.version if beside is not None and mine and other else "",
        differences=differences,
        in_force=current.saved.version if current is not None else "",
        mine=any(attestation.by == visitor for attestation in state.attestations),
    )


def _find_before(state: VersionState, others: Sequence[VersionState]) -> VersionState | None:
    """Return the version that was in force last before this one."""
    began_ms = max((span.from_ms for span in state.spans), default=0)
    earlier = [(span.to_ms, other) for other in others for span in other.spans if span.to_ms and span.to_ms <= began_ms]
    return max(earlier, key=lambda pair: pair[0])[1] if earlier else None


def _parse(state: VersionState) -> Policy | None:
    """Return the rules, or None where another version of Sayso wrote them."""
    try:
        return Policy.model_validate_json(state.saved.rules)
    except ValidationError:
        return None
