"""Routes and pages of the rules in force, in the order of trial, and of the rulebook's versions."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field, ValidationError

from sayso.core.clock import now_ms
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import ASKING, Action, Mode, PolicyRule
from sayso.core.sentences import rules as sentences
from sayso.core.text.language import _
from sayso.core.text.summaries import Summary, summarize
from sayso.core.transitions.states import find_item_state
from sayso.features.whatif.diffs import RuleSource, compare_rulebooks, find_sources, list_differences
from sayso.wire.models import ListFiles, RequestBody
from sayso.wire.rulebook import AttestationView, SpanView, VersionList, VersionText, VersionView
from service.channels.previews import SampleCall
from service.core.operations.masking import mask_record
from service.core.store.rules import DEFAULT
from service.core.wiring import Wiring
from service.edge.api.dependencies import Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.edge.web.content.cards import item_href
from service.edge.web.content.sorting import Keys, read_sorting
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.insights.figures import read_rule_cost
from service.features.people.group_pages import describe_plan
from service.features.people.who import plan, plan_weeks
from service.features.rulebook import versions
from service.features.rulebook.versions import VersionState, attest, list_versions, read_version, restore
from service.features.whatif.trial_pages import find_cases

policy = APIRouter(prefix="/policy", tags=["policy"], route_class=SignedInRoute)

Version = Annotated[str, Path(min_length=1, max_length=100, examples=["0f3a9c1b2d4e5f60"])]


class AttestRequest(RequestBody):
    """The exact text of a file of rules."""

    text: str = Field(examples=["version: 1\ndefault: deny\nrules: []\n"])
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    lists: ListFiles = Field(default_factory=dict)


class RestoreRequest(RequestBody):
    """The version that is in force, so that none is replaced unseen."""

    replaces: str = Field(max_length=100, examples=["1f3a9c1b2d4e5f60"])


@policy.get("/versions", operation_id="listRuleVersions", responses=problems(401, 403))
async def list_all(_caller: Person, parts: Parts) -> VersionList:
    """List the versions of the rules, when each was in force, and who attests them."""
    return VersionList(versions=[VersionView(**_view(state, parts)) for state in await list_versions(parts)])


@policy.get("/versions/{version}", operation_id="getRuleVersion", responses=problems(401, 403, 404))
async def read_one(version: Version, _caller: Person, parts: Parts) -> VersionText:
    """Return a version of the rules with its text."""
    return view_text(await read_version(parts, version), parts)


@policy.post("/attestations", operation_id="attestRules", responses=WRITES | problems(422, 429))
async def attest_rules(body: AttestRequest, caller: Person, parts: Parts) -> VersionText:
    """Attest exactly these bytes. A file with enough attestations takes force where a process holds it."""
    return view_text(await attest(parts, body.text, body.file, caller.name, body.lists), parts)


@policy.post("/versions/{version}/restore", operation_id="restoreRules", responses=WRITES | problems(404, 422))
async def restore_version(version: Version, body: RestoreRequest, caller: Person, parts: Parts) -> VersionText:
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


DAYS = 7

router = APIRouter(route_class=RecordedRoute)


class RuleRow(NamedTuple):
    """A rule in the list, with its number in the order of trial; `hits` counts the calls that it decided lately."""

    number: int
    rule: PolicyRule
    calls: str
    action: str
    who: str
    wait: str
    end: str
    hits: int
    by_itself: bool

    @property
    def look(self) -> str:
        return {Action.ALLOW: "approved", Action.DENY: "denied"}.get(self.rule.action, "")


class AskedRow(NamedTuple):
    """One of the last items that a rule asked for."""

    href: str
    tool: str
    summary: Summary
    state: str
    agent: str
    at_ms: int


_SORTED_BY: Keys[RuleRow] = {
    "order": lambda row: row.number,
    "rule": lambda row: row.rule.rule_id.casefold(),
    "action": lambda row: row.action,
    "priority": lambda row: row.rule.priority,
    "who": lambda row: row.who.casefold() or None,
    "hits": lambda row: row.hits,
}


@router.get("/rules")
async def list_rules(request: Request, visitor: SignedIn, sort: Annotated[str, Query(max_length=20)] = "") -> Response:
    """Show the rules in force in the order of trial, or sorted by a column."""
    wiring = wiring_of(request)
    rules = wiring.rules
    policy, hits = rules.policy(), await rules.count_hits(DAYS)
    sorting = read_sorting(sort, _SORTED_BY)
    rows = [_describe_row(number, rule, hits.get(rule.rule_id, 0)) for number, rule in enumerate(policy.rules, 1)]
    return await show(
        request,
        visitor,
        "pages/rules.html",
        title=_("Rules"),
        rows=sorting.sort(rows, _SORTED_BY),
        sorting=sorting,
        default=sentences.describe_default(policy),
        default_hits=hits.get(DEFAULT, 0),
        rules_version=policy.version,
        cases=await find_cases(wiring),
        held=" ".join(versions.describe_held_back(wiring.rules.held_back))
        if wiring.rules.held_back is not None
        else "",
        days=DAYS,
    )


@router.get("/rules/{rule_id}")
async def read_rule(request: Request, visitor: SignedIn, rule_id: str) -> Response:
    """Show one rule: in words, as it stands in its file, who is asked, and the last items."""
    wiring = wiring_of(request)
    policy = wiring.rules.policy()
    rule = next((rule for rule in policy.rules if rule.rule_id == rule_id), None)
    hits = await wiring.rules.count_hits(DAYS)
    shadow = await wiring.rules.count_shadow_hits(rule_id, DAYS) if rule is not None and not rule.is_live else {}
    return await show(
        request,
        visitor,
        "pages/rule.html",
        title=rule_id,
        code=200 if rule is not None else 404,
        rule=rule,
        rule_id=rule_id,
        words=sentences.describe_rule(rule) if rule is not None else "",
        row=_describe_row(policy.rules.index(rule) + 1, rule, hits.get(rule_id, 0)) if rule is not None else None,
        shadow=sentences.describe_shadow_hits(shadow) if rule is not None and rule.mode is Mode.SHADOW else "",
        number=policy.rules.index(rule) + 1 if rule is not None else 0,
        count=len(policy.rules),
        source=await asyncio.to_thread(_find_source, wiring, rule_id),
        asked=await _list_asked(wiring, rule_id),
        cost=await read_rule_cost(wiring, rule_id),
        days=DAYS,
        **await _plan(request, visitor, policy, rule),
    )


def _find_source(wiring: Wiring, rule_id: str) -> tuple[str, RuleSource] | None:
    """Return the name of this service's file and the rule's lines; None where the rule in force is not from it."""
    file = wiring.rules.read_source()
    source = find_sources(file[1]).get(rule_id) if file is not None else None
    return (file[0].name, source) if file is not None and source is not None else None


def _describe_row(number: int, rule: PolicyRule, hits: int) -> RuleRow:
    asks = rule.action in ASKING
    return RuleRow(
        number=number,
        rule=rule,
        calls=sentences.describe_calls(rule),
        action=sentences.ACTIONS[rule.action],
        who=sentences.describe_who(rule.terms) if asks else "",
        wait=sentences.describe_wait(rule.terms) if asks else "",
        end=sentences.describe_end(rule.terms) if asks else "",
        hits=hits,
        by_itself=sentences.runs_by_itself(rule),
    )


async def _list_asked(wiring: Wiring, rule_id: str) -> list[AskedRow]:
    entries = await wiring.rules.list_asked(rule_id)
    records = await wiring.desk.suspensions.read_many(list(dict.fromkeys(record_id for record_id, _ in entries)))
    masked = {record.id: mask_record(record) for record in records}
    items = {(record.id, item.item_id): (record, item) for record in masked.values() for item in record.items}
    return [
        AskedRow(
            href=item_href(record, item),
            tool=item.tool.name,
            summary=summarize(item.tool.args),
            state=find_item_state(record, item),
            agent=record.run.agent,
            at_ms=record.created_at_ms,
        )
        for record, item in (items[entry] for entry in entries if entry in items)
    ]


async def _plan(request: Request, visitor: Visitor, policy: Policy, rule: PolicyRule | None) -> dict[str, Any]:
    """Return who would be asked now; nothing for a rule that asks nobody."""
    wiring = wiring_of(request)
    zone = ZoneInfo((await wiring.duty.find_preferences(visitor.name)).time_zone)
    if rule is None or rule.action not in ASKING or not rule.is_live:
        return {"zone": zone, "weeks": [], **describe_plan(None)}
    at_ms = now_ms()
    call = SampleCall(tool=next(iter(rule.condition.tools), "tool"))
    forecast = await plan(wiring, request.app.state.channels, policy, rule.rule_id, call, at_ms)
    weeks = await plan_weeks(wiring, rule.terms, datetime.fromtimestamp(at_ms / 1000, tz=zone).date(), zone)
    return {"zone": zone, "weeks": weeks, **describe_plan(forecast)}


_PAGE = "pages/rule_version.html"


class VersionPage(NamedTuple):
    """A version, its rules in words, and how it differs from `beside`, the version in force or the one before."""

    state: VersionState
    words: Sequence[str]
    beside: str
    differences: Sequence[str]
    in_force: str
    mine: bool


@router.get("/rules/-/versions")
async def show_versions(request: Request, visitor: SignedIn) -> Response:
    """Show the versions, the last saved first."""
    wiring = wiring_of(request)
    held = wiring.rules.held_back
    return await show(
        request,
        visitor,
        "pages/rule_versions.html",
        title=_("Versions of the rules"),
        versions=await versions.list_versions(wiring),
        needed=wiring.settings.policy_attestations,
        held=" ".join(versions.describe_held_back(held)) if held is not None else "",
    )


@router.get("/rules/-/versions/{version}")
async def show_version(request: Request, visitor: SignedIn, version: str) -> Response:
    """Show one version: the rules as they were, when they were in force, and who attests them."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, version, {}))


@router.post("/rules/-/versions/{version}")
async def change(request: Request, visitor: SignedIn, version: str) -> Response:
    """Attest the bytes of a version, or put it back in force."""
    async with receive(request, visitor, _PAGE, partial(_gather, request, visitor, version)) as post:
        wiring = wiring_of(request)
        if post.get("act") == "restore":
            await versions.restore(wiring, version, visitor.name, post.get("replaces", ""))
        else:
            await versions.attest_version(wiring, version, post.get("digest", ""), visitor.name)
    return RedirectResponse(f"/rules/-/versions/{version}", 303)


async def _gather(request: Request, visitor: Visitor, version: str, _post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    state, others = await versions.read_version(wiring, version), await versions.list_versions(wiring)
    return {
        "title": _("Version of the rules"),
        "page": await asyncio.to_thread(_describe, state, others, visitor.name),
        "needed": wiring.settings.policy_attestations,
    }


def _describe(state: VersionState, others: Sequence[VersionState], visitor: str) -> VersionPage:
    current = next((other for other in others if other.in_force), None)
    beside = _find_before(state, others) if state.in_force else current
    mine, other = _parse(state), _parse(beside) if beside is not None else None
    words = (
        [*(f"{rule.rule_id}: {sentences.describe_rule(rule)}" for rule in mine.rules), sentences.describe_default(mine)]
        if mine
        else []
    )
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
    began_ms = max((span.from_ms for span in state.spans), default=0)
    earlier = [(span.to_ms, other) for other in others for span in other.spans if span.to_ms and span.to_ms <= began_ms]
    return max(earlier, key=lambda pair: pair[0])[1] if earlier else None


def _parse(state: VersionState) -> Policy | None:
    """Return the rules, or None where another version of Sayso wrote them."""
    try:
        return Policy.model_validate_json(state.saved.rules)
    except ValidationError:
        return None
