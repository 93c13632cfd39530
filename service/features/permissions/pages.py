"""The page of grants and mandates, and the folds of an item that grant like calls or offer another call."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.policy.counters.readings import to_units, write_amount
from sayso.core.policy.engine import Policy
from sayso.core.policy.rule_keys import Grants
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.envelopes import CounterOffer, GrantRequest
from sayso.core.records.items import Answer, Item
from sayso.core.records.permissions import MANDATE_PREFIX, Grant, GrantState, Mandate
from sayso.core.sentences import join_words
from sayso.core.sentences.deadlines import Sentence
from sayso.core.sentences.plans import PlanWords, describe_plan
from sayso.core.text.language import _
from sayso.core.text.redaction import MASK, redact
from sayso.core.text.summaries import write_leaf
from sayso.errors import InvalidInput
from sayso.features.permissions import text
from sayso.features.permissions.making import find_grants, make_grant
from sayso.features.permissions.text import describe_grant
from service.core.wiring import Wiring
from service.edge.http.bodies import misfit
from service.edge.web.additions import DecisionForm, DecisionPart, InboxLine, InboxSection, ItemPage
from service.edge.web.content.edits import STEP
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.permissions.desk import Granting, is_ready, reinstate
from service.features.permissions.store import Trial, Use
from service.forms.controls import read_typed_number

_PAGE = "pages/grants.html"
_WAITING = (GrantState.PROBATION, GrantState.WAITING)
_OVER = (GrantState.ENDED, GrantState.REVOKED, GrantState.SUSPENDED)

router = APIRouter(route_class=RecordedRoute)


class GrantRow(NamedTuple):
    """A grant as the page shows it."""

    use: Use[Grant]
    sentence: Sentence
    state: str
    css: str
    people: str
    left: str
    waits: bool
    in_force: bool
    returns: bool
    tried: str = ""
    rest: str = ""
    ready: bool = False


class MandateRow(NamedTuple):
    """A mandate as the page shows it."""

    use: Use[Mandate]
    sentence: Sentence
    plan: PlanWords
    state: str
    css: str
    people: str
    left: str
    in_force: bool


@router.get("/grants")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the grants and mandates of the last month, the latest first."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}))


@router.post("/grants/{grant_id}")
async def change(request: Request, visitor: SignedIn, grant_id: str) -> Response:
    """Confirm, revoke or reinstate a grant, or revoke a mandate."""
    async with receive(request, visitor, _PAGE, partial(_gather, request, visitor)) as post:
        grants, by = wiring_of(request).feature(Granting), visitor.principal.reviewer("web")
        if grant_id.startswith(MANDATE_PREFIX):
            acts: dict[str, Any] = {"revoke": wiring_of(request).feature(Granting).mandates.revoke}
        else:
            overrule = partial(reinstate, wiring_of(request))
            acts = {"confirm": grants.confirm, "revoke": grants.revoke, "reinstate": overrule}
        act = acts.get(post.get("act", ""))
        if act is None:
            raise InvalidInput(_("Choose one of the buttons on this page."))
        await act(grant_id, by)
    return RedirectResponse("/grants", 303)


async def _gather(request: Request, visitor: Visitor, _post: Post) -> dict[str, Any]:
    grants = wiring_of(request).feature(Granting)
    uses, now_ms = await grants.list_uses(), await grants.now_ms()
    trials = await grants.lessons.read_trials(use.grant for use in uses)
    rows = [_describe(use, grants.find_void(use.grant), now_ms, visitor.name) for use in uses]
    find_void = grants.mandates.find_void
    mandates = [_describe_mandate(use, find_void(use.grant), now_ms) for use in await grants.mandates.list_uses()]
    proposed = [row for row in rows if row.use.grant.find_state(now_ms) is GrantState.PROBATION]
    return {
        "mandates": [row for row in mandates if row.in_force],
        "ended_mandates": [row for row in mandates if not row.in_force],
        "title": _("Grants"),
        "now_ms": now_ms,
        "proposed": [_add_trial(row, trials[row.use.grant.id]) for row in proposed],
        "current": [row for row in rows if row.in_force or row.use.grant.find_state(now_ms) is GrantState.WAITING],
        "suspended": [row for row in rows if row.returns],
        "ended": [row for row in rows if row.use.grant.find_state(now_ms) in _OVER and not row.returns],
    }


def _describe_mandate(use: Use[Mandate], void: bool, now_ms: int) -> MandateRow:
    mandate, state = use.grant, use.grant.find_state(now_ms)
    in_force = state is GrantState.IN_FORCE
    return MandateRow(
        use=use,
        sentence=text.describe_mandate(mandate),
        plan=describe_plan(mandate.envelope),
        state=_("void in part: a rule has changed") if in_force and void else text.describe_grant_state(state),
        css="approved" if in_force and not void else "denied",
        people=join_words([granter.id for granter in mandate.granters]),
        left=text.describe_rest(mandate, use.calls, use.total) if in_force else "",
        in_force=in_force,
    )


def _describe(use: Use[Grant], void: bool, now_ms: int, visitor: str) -> GrantRow:
    grant, state = use.grant, use.grant.find_state(now_ms)
    alive = state in (GrantState.IN_FORCE, *_WAITING)
    css = {GrantState.IN_FORCE: "approved", **dict.fromkeys(_WAITING, "suspended")}.get(state, "denied")
    return GrantRow(
        use=use,
        sentence=text.describe_grant(grant),
        state=_("void: its rule has changed") if alive and void else text.describe_grant_state(state),
        css="denied" if void else css,
        people=join_words([granter.id for granter in grant.granters]),
        left=text.describe_left_over(grant, use.calls, use.total) if alive else "",
        waits=state is GrantState.WAITING and not void and visitor not in [granter.id for granter in grant.granters],
        in_force=state is GrantState.IN_FORCE,
        returns=grant.can_return(now_ms) and not void,
    )


def _add_trial(row: GrantRow, trial: Trial) -> GrantRow:
    grant = row.use.grant
    rest = text.describe_missing(grant.learned, trial.approved) if grant.learned is not None else ""
    void = row.css == "denied"
    tried = text.describe_trial(**trial._asdict(), unanswered=trial.unanswered)
    return row._replace(tried=tried, rest=rest, ready=is_ready(grant, trial) and not void)


_IN_INBOX = 3


async def add_to_inbox(wiring: Wiring, visitor: Visitor) -> InboxSection | None:
    """Return the first grants that wait for this person or for anybody."""
    waiting = await wiring.feature(Granting).list_waiting(visitor.name)
    lines = tuple(map(_write_line, waiting[:_IN_INBOX]))
    return InboxSection("grants", _("Grants"), "/grants", lines, len(waiting) - len(lines)) if lines else None


def _write_line(grant: Grant) -> InboxLine:
    granted = _("Granted by %(who)s; waits for another person", who=join_words([one.id for one in grant.granters]))
    detail = granted if grant.granters else _("Proposed by Sayso")
    return InboxLine(f"/grants#{grant.id}", describe_grant(grant), (detail,))


WITH = "with"  # the control of the button that sends a decision with its grant or offer
SEEN = "seen"  # the control that holds the digest of what the shown sentence says
_SPANS_S = (3_600, 8 * 3_600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400)
_STEPS = {"grant": Answer.APPROVE, "offer": Answer.DENY}
_SAME, _MOST, _ONLY = "same.", "most.", "only."


class Argument(NamedTuple):
    """An argument of the call that a grant or an offer may limit; a `fixed` one always stays as it is."""

    path: str
    name: str
    shown: str
    number: bool
    text: bool
    fixed: bool
    same: bool
    most: str
    only: str


@dataclass(frozen=True)
class GrantForm:
    """The folds of an item, filled with what was typed; `step` is the open one and `sentence` what it would let run."""

    spans: tuple[int, ...]
    span: str
    count: str
    most_count: int | None
    sum: str
    summed: str
    most_sum: str
    people: int
    arguments: tuple[Argument, ...]
    offers: bool
    message: str = ""
    step: str = ""
    sentence: Sentence = ()
    seen: str = ""


def make_grant_form(policy: Policy, item: Item, post: Post) -> GrantForm | None:
    """Return the folds of an item; None where the rule lets nobody grant such calls."""
    grants = find_grants(policy, item)
    if grants is None or not item.open:
        return None
    people = max(grants.people, item.terms.quorum.approve)
    spans = tuple(dict.fromkeys([*(span for span in _SPANS_S if span < grants.longest), grants.longest]))
    arguments = tuple(_list_arguments(item, grants, post))
    alone = item.terms.quorum.deny == 1 and not item.terms.quorum.each_of  # any one of those who may deny
    return GrantForm(
        spans=spans,
        span=post.get("span", ""),
        count=post.get("count", ""),
        most_count=grants.count,
        sum=post.get("sum", ""),
        summed=grants.sum.of.removeprefix("args.") if grants.sum is not None else "",
        most_sum=write_amount(to_units(grants.sum.max)) if grants.sum is not None else "",
        people=people,
        arguments=arguments,
        message=post.get("message", ""),
        offers=people == 1 and alone and any(arg.number or arg.text for arg in arguments),
    )


def find_grant_step(post: Post) -> str:
    """Return `grant` or `offer` where a form asks to show its sentence; else empty."""
    step = post.get(STEP, "")
    return step if _STEPS.get(step) == post.get("answer") else ""


def add_grant(policy: Policy, item: Item, decision: DecisionRequest, post: Post) -> DecisionRequest:
    """Return the decision with the form's grant or offer; raises `InvalidInput` if another was shown."""
    step = post.get(WITH, "")
    if _STEPS.get(step) != post.get("answer"):
        return decision
    granting = read_grant(policy, item, decision, post, step)
    if digest_granting(granting) != post.get(SEEN):
        raise InvalidInput(_("The sentence has changed. Show it again before you send it."))
    return granting


def read_grant(policy: Policy, item: Item, decision: DecisionRequest, post: Post, step: str) -> DecisionRequest:
    """Return the decision with what the fold says; an argument whose box is cleared is free. Raises `InvalidInput`."""
    most: JsonObject = {name.removeprefix(_MOST): read_typed_number(value) for name, value in _list_typed(post, _MOST)}
    only: JsonObject = {name.removeprefix(_ONLY): value for name, value in _list_typed(post, _ONLY)}
    try:
        if step == "offer":
            return decision.model_copy(update={"offer": CounterOffer.model_validate({"at_most": most, "equal": only})})
        ticked = [name.removeprefix(_SAME) for name, _on in _list_typed(post, _SAME)]
        same = [path for path in ticked if path not in most]
        free = _list_freed(policy, item, {*ticked, *most})
        given: dict[str, Any] = {"for_s": post.get("span", ""), "at_most": most, "same": same, "free": free}
        given |= {name: read_typed_number(value) for name in ("count", "sum") if (value := post.get(name, "").strip())}
        return decision.model_copy(update={"grant": GrantRequest.model_validate(given)})
    except ValidationError as error:
        raise misfit(error.errors(include_url=False, include_input=False), step) from error


def digest_granting(decision: DecisionRequest) -> str:
    """Return the digest of what a decision grants or offers."""
    return digest_json(decision.model_dump(mode="json", include={"grant", "offer"}))


async def add_to_item(page: ItemPage) -> dict[str, object]:
    """Return the folds of an item's page."""
    policy = page.wiring.rules.policy()
    return {"granting": await asyncio.to_thread(make_grant_form, policy, page.item, page.post)}


async def preview_granting(form: DecisionForm) -> dict[str, object]:
    """Return the folds with what a decision would let run; raises `InvalidInput` beyond what the rule allows."""
    item, post, step, policy = form.item, form.post, find_grant_step(form.post), form.wiring.rules.policy()
    suspension = await form.wiring.desk.suspensions.read(form.suspension_id)
    granting = await asyncio.to_thread(read_grant, policy, item, form.decision, post, step)
    by = form.by.reviewer("web")
    grant = make_grant(policy, suspension.record, item, granting, by, "gra_shown", suspension.now_ms)
    grant_form = await asyncio.to_thread(make_grant_form, policy, item, post)
    if grant is None or grant_form is None:
        raise InvalidInput(_("This can no longer be granted. Open the item again."))
    sentence, seen = describe_grant(grant), digest_granting(granting)
    return {"granting": replace(grant_form, step=step, sentence=sentence, seen=seen)}


async def complete_decision(form: DecisionForm) -> DecisionRequest:
    """Return the decision with its grant or offer."""
    return await asyncio.to_thread(add_grant, form.wiring.rules.policy(), form.item, form.decision, form.post)


GRANTING = DecisionPart(lambda post: bool(find_grant_step(post)), preview_granting, complete_decision)


def _list_freed(policy: Policy, item: Item, limited: set[str]) -> list[str]:
    """Return the arguments that the form shows and does not limit; the summed one has the limit of the sum."""
    grants = find_grants(policy, item)
    if grants is None:
        return []
    bound = {*limited, *grants.by, *((grants.sum.of,) if grants.sum is not None else ())}
    masked = redact(item.tool.args, None, item.terms.secrets).args
    shown = (path for path, _value in _list_plain(masked, "args"))
    return [path for path in shown if not any(path == prefix or path.startswith(f"{prefix}.") for prefix in bound)]


def _list_typed(post: Post, prefix: str) -> list[tuple[str, str]]:
    return [(name, value.strip()) for name, value in post.items() if name.startswith(prefix) and value.strip()]


def _list_arguments(item: Item, grants: Grants, post: Post) -> list[Argument]:
    """Return the arguments that can be limited: plain ones without secrets. All stay the same unless that is undone."""
    masked = redact(item.tool.args, None, item.terms.secrets).args
    summed = grants.sum.of if grants.sum is not None else ""
    typed = STEP in post or WITH in post
    arguments: list[Argument] = []
    for path, value in _list_plain(masked, "args"):
        fixed = path in grants.by
        number = isinstance(value, int | float) and not isinstance(value, bool)
        argument = Argument(
            path=path,
            name=path.removeprefix("args."),
            shown=write_leaf(value),
            number=number,
            text=isinstance(value, str),
            fixed=fixed,
            same=fixed or (f"{_SAME}{path}" in post if typed else path != summed),
            most=post.get(f"{_MOST}{path}", ""),
            only=post.get(f"{_ONLY}{path}", ""),
        )
        arguments.append(argument)
    return arguments


def _list_plain(args: Mapping[str, JsonValue], path: str) -> list[tuple[str, JsonValue]]:
    pairs: list[tuple[str, JsonValue]] = []
    for name, value in args.items():
        if not name.replace("-", "_").isidentifier() or not name.isascii():
            continue
        if isinstance(value, dict) and path.count(".") < 3:
            pairs += _list_plain(value, f"{path}.{name}")
        elif value is not None and value != MASK and not isinstance(value, dict):
            pairs.append((f"{path}.{name}", value))
    return pairs
