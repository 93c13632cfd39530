"""The page that says who is asked when under a rule, and what happens at the deadline."""

from itertools import groupby
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.core.clock import now_ms
from sayso.core.policy.rules import ASKING
from sayso.core.sentences.names import name_reviewers
from sayso.core.sentences.times import describe_local
from sayso.core.text.language import _
from sayso.errors import SaysoError
from service.channels.previews import SampleCall
from service.channels.who import Asked, Plan, plan
from service.web.errors import show_page_again
from service.web.form_posts import RecordedRoute, describe_refusal
from service.web.pages import show
from service.web.people.hours import read_moment
from service.web.sessions import SignedIn, Visitor, wiring_of

_PAGE = "pages/who.html"

router = APIRouter(route_class=RecordedRoute)


@router.get("/who")
async def read(
    request: Request,
    visitor: SignedIn,
    rule: Annotated[str, Query(max_length=200)] = "",
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Show who would be asked under a rule at a time; by default now, under the first rule that asks."""
    context = await _gather(request, visitor, rule, at)
    try:
        plan = await _plan(request, context) if context["rule_id"] else None
    except SaysoError as error:
        show_page_again(request, _PAGE, visitor=visitor, **{**context, "sentence": describe_refusal(error)})
        raise
    return await show(request, visitor, _PAGE, **{**context, **describe_plan(plan)})


async def _gather(request: Request, visitor: Visitor, rule_id: str, at: str) -> dict[str, Any]:
    wiring = wiring_of(request)
    zone = ZoneInfo((await wiring.duty.find_preferences(visitor.name)).time_zone)
    rules = [rule.rule_id for rule in wiring.rules.policy().rules if rule.action in ASKING]
    return {
        "title": _("Who is asked"),
        "sentence": "",
        "rules": rules,
        "rule_id": rule_id or (rules[0] if rules else ""),
        "at": at or describe_local(now_ms(), zone).replace(" ", "T"),
        "zone": zone,
        **describe_plan(None),
    }


async def _plan(request: Request, context: dict[str, Any]) -> Plan:
    wiring, zone = wiring_of(request), context["zone"]
    at_ms = read_moment(context["at"], zone, _("Enter a time such as 2026-12-24T18:00."))
    policy, call = wiring.rules.policy(), SampleCall(tool="refund")
    return await plan(wiring, request.app.state.channels, policy, context["rule_id"], call, at_ms)


def describe_plan(plan: Plan | None) -> dict[str, object]:
    """Return what `parts/plan.html` shows of a plan."""
    asked: tuple[Asked, ...] = plan.asked if plan is not None else ()
    steps = [(step, [*rows]) for step, rows in groupby(asked, lambda entry: entry.step)]
    names = {entry.reviewer: name_reviewers([entry.reviewer]) if entry.reviewer else _("everybody") for entry in asked}
    return {"plan": plan, "steps": steps, "names": names}
