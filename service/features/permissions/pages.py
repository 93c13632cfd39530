"""The page of standing grants and mandates: what each lets run, its use, and the buttons to confirm and revoke it."""

from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.records.permissions import MANDATE_PREFIX, Grant, GrantState, Mandate
from sayso.core.sentences import join_words
from sayso.core.sentences.plans import PlanWords, describe_plan
from sayso.core.sentences.times import Sentence
from sayso.core.text.language import _
from sayso.errors import InvalidInput
from sayso.features.permissions import text
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.permissions.desk import Granting, is_ready, reinstate
from service.features.permissions.store import Trial, Use

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
    """Return the row of a proposed grant with what it would have allowed."""
    grant = row.use.grant
    rest = text.describe_missing(grant.learned, trial.approved) if grant.learned is not None else ""
    void = row.css == "denied"
    tried = text.describe_trial(**trial._asdict(), unanswered=trial.unanswered)
    return row._replace(tried=tried, rest=rest, ready=is_ready(grant, trial) and not void)
