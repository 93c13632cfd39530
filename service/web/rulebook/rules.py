"""The rules in force in the order of trial, and the page of one rule."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sayso.core.clock import now_ms
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import ASKING, Action, Mode, PolicyRule
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.rules import (
    ACTIONS,
    describe_calls,
    describe_default,
    describe_end,
    describe_rule,
    describe_shadow_hits,
    describe_wait,
    describe_who,
    runs_by_itself,
)
from sayso.core.text.language import _
from sayso.core.text.summaries import Summary, summarize
from sayso.core.transitions.states import find_item_state
from sayso.features.whatif.diffs import RuleSource, find_sources
from service.channels.previews import SampleCall
from service.channels.who import plan, plan_weeks
from service.operations.insights.figures import read_rule_cost
from service.operations.masking import mask_record
from service.operations.rulebook.versions import describe_held_back
from service.store.suspensions.rule_hits import DEFAULT
from service.web.content.cards import item_href
from service.web.form_posts import RecordedRoute
from service.web.pages import show
from service.web.people.who import describe_plan
from service.web.rulebook.cases import find_cases
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.wiring import Wiring

DAYS = 7

router = APIRouter(route_class=RecordedRoute)


@dataclass(frozen=True)
class RuleRow:
    """A rule in the list; `hits` counts the calls that it decided in the last days."""

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
        """The state whose colour the action has."""
        return {Action.ALLOW: "approved", Action.DENY: "denied"}.get(self.rule.action, "")


@dataclass(frozen=True)
class AskedRow:
    """One of the last items that a rule asked for."""

    href: str
    tool: str
    summary: Summary
    state: str
    agent: str
    at_ms: int


@router.get("/rules")
async def list_rules(request: Request, visitor: SignedIn) -> Response:
    """Show the rules in force in the order of trial."""
    wiring = wiring_of(request)
    rules = wiring.rules
    policy, hits = rules.policy(), await rules.count_hits(DAYS)
    return await show(
        request,
        visitor,
        "pages/rules.html",
        title=_("Rules"),
        rows=[_describe_row(rule, hits.get(rule.rule_id, 0)) for rule in policy.rules],
        default=describe_default(policy),
        default_hits=hits.get(DEFAULT, 0),
        rules_version=policy.version,
        cases=await find_cases(wiring),
        held=" ".join(describe_held_back(wiring.rules.held_back)) if wiring.rules.held_back is not None else "",
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
        words=describe_rule(rule) if rule is not None else "",
        row=_describe_row(rule, hits.get(rule_id, 0)) if rule is not None else None,
        shadow=describe_shadow_hits(shadow) if rule is not None and rule.mode is Mode.SHADOW else "",
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


def _describe_row(rule: PolicyRule, hits: int) -> RuleRow:
    asks = rule.action in ASKING
    return RuleRow(
        rule=rule,
        calls=describe_calls(rule),
        action=ACTIONS[rule.action],
        who=describe_who(rule.terms) if asks else "",
        wait=describe_wait(rule.terms) if asks else "",
        end=describe_end(rule.terms) if asks else "",
        hits=hits,
        by_itself=runs_by_itself(rule),
    )


async def _list_asked(wiring: Wiring, rule_id: str) -> list[AskedRow]:
    entries = await wiring.rules.list_asked(rule_id)
    records = await wiring.desk.suspensions.read_many(list(dict.fromkeys(record_id for record_id, _ in entries)))
    masked = {record.id: mask_record(record) for record in records}
    items = {(record.id, item.item_id): (record, item) for record in masked.values() for item in record.items}
    return [_describe_asked(*items[entry]) for entry in entries if entry in items]


def _describe_asked(record: SuspensionRecord, item: Item) -> AskedRow:
    return AskedRow(
        href=item_href(record, item),
        tool=item.tool.name,
        summary=summarize(item.tool.args),
        state=find_item_state(record, item),
        agent=record.run.agent,
        at_ms=record.created_at_ms,
    )


async def _plan(request: Request, visitor: Visitor, policy: Policy, rule: PolicyRule | None) -> dict[str, Any]:
    """Return who would be asked now; nothing for a rule that asks nobody."""
    wiring = wiring_of(request)
    zone = ZoneInfo((await wiring.duty.find_preferences(visitor.name)).time_zone)
    if rule is None or rule.action not in ASKING or not rule.is_live:
        return {"zone": zone, "weeks": [], **describe_plan(None)}
    at_ms = now_ms()
    call = SampleCall(tool=next(iter(rule.condition.tools), "tool"))
    forecast = await plan(wiring, request.app.state.channels, policy, rule.rule_id, call, at_ms)
    today = datetime.fromtimestamp(at_ms / 1000, tz=zone).date()
    weeks = await plan_weeks(wiring, rule.terms, today, zone)
    return {"zone": zone, "weeks": weeks, **describe_plan(forecast)}
