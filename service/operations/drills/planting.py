"""Plant a drill among a reviewer's items."""

import secrets

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import HOUR_MS, new_id
from sayso.core.policy.decisions import describe_action
from sayso.core.policy.external import describe_begun
from sayso.core.policy.managers import MANAGERS
from sayso.core.policy.rules import Action
from sayso.core.records.events import Event
from sayso.core.records.items import Drill, ItemDraft, ItemTool, Prompt
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from sayso.core.records.terms import RuleTerms, group_of
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import InvalidInput, NotFound
from service.operations.drills.templates import DrillTemplate, drills_of
from service.store.insights.recents import Recents
from service.wiring import Wiring

_TIMEOUT_S = 14_400
"""The time to decide a drill without a rule."""

SCHEDULE = "clock"
"""The planter of scheduled drills."""


async def plant_drill(wiring: Wiring, template: str, reviewer: str, planted_by: str) -> SuspensionRecord:
    """Ask a reviewer about the false call of a template, under the terms of its rule.

    Only this reviewer can decide it. Its run has no agent, nobody is notified, and the permit is void. Raises
    `NotFound` for an unknown template or reviewer, and `InvalidInput` for somebody whom the rule does not ask.
    """
    drill = drills_of(wiring.settings.drills).find(template)
    person = await wiring.reviewers.find(reviewer)
    if person is None or not person.active:
        raise NotFound(f"There is no active reviewer {reviewer[:80]!r}. `sayso people list` lists them.")
    terms = _find_terms(wiring, drill)
    if not await _is_asked(wiring, terms, reviewer):
        asked = ", ".join(terms.reviewers)
        raise InvalidInput(f"The rule {drill.rule} does not ask {reviewer}. Name one of its reviewers: {asked}.")
    definition = ToolDefinition(name=drill.tool, description=drill.description)
    await wiring.runs.save_definitions([definition])
    item = ItemDraft(
        call_id="",
        tool=ItemTool(name=drill.tool, args=drill.args, definition=definition.digest),
        prompt=Prompt(reason=drill.reason),
        terms=terms,
        rule_id=drill.rule,
        rule_version=wiring.rules.policy().version,
        drill=Drill(template=drill.id, signs=drill.signs, planted_by=planted_by, reviewer=reviewer),
    )
    run_id = new_id("run")
    run = RunRef(id=run_id, agent=drill.agent, owner=drill.requested_by, thread_id=run_id, title=drill.title)
    return (await wiring.desk.plant(run, item, _describe_judged(run, item))).record


def _find_terms(wiring: Wiring, drill: DrillTemplate) -> RuleTerms:
    """Return the terms under which the rule of a template asks, those of any call without a rule.

    Nobody is notified, no number is there to match, and no draw is made. Names that follow the call are left out.
    """
    rules = wiring.rules.policy().rules
    asking = (rule.terms for rule in rules if rule.rule_id == drill.rule and rule.action is Action.REQUEST_APPROVAL)
    terms = next(asking, RuleTerms(timeout_s=_TIMEOUT_S))
    named = tuple(name for name in terms.reviewers if name not in MANAGERS)
    update: dict[str, object] = {"channels": (), "match_number": False, "notify_requester": False, "sample": None}
    update |= {"reviewers": named} if len(named) < len(terms.reviewers) else {}
    update |= {"timeout_s": drill.timeout_s, "timeout": None} if drill.timeout_s is not None else {}
    return terms.model_copy(update=update)


async def _is_asked(wiring: Wiring, terms: RuleTerms, reviewer: str) -> bool:
    if not terms.reviewers or reviewer in terms.reviewers:
        return True
    actor = await wiring.reviewers.find_actor(reviewer, "api")
    return not {group_of(name) for name in terms.reviewers}.isdisjoint(actor.groups)


def _describe_judged(run: RunRef, item: ItemDraft) -> tuple[Event, ...]:
    """Return the events that the trail of a call begins with, as if rules had judged it."""
    call = ToolCall(call_id=item.call_id, index=0, name=item.tool.name, args=item.tool.args)
    rules: JsonObject = {"policy_id": item.rule_id, "matched_rules": [item.rule_id] if item.rule_id else []}
    rules["rule_version"] = item.rule_version
    begun = describe_begun(run, [call.name], step=1)
    return begun, describe_action(call, Action.REQUEST_APPROVAL, item.prompt.reason or "", rules)


async def plant_scheduled(wiring: Wiring) -> SuspensionRecord | None:
    """Plant a random template for a random active reviewer, if the schedule of the drills file is due."""
    plan = drills_of(wiring.settings.drills)
    if not plan.every_h or not await wiring.part(Recents).drills.take_turn(plan.every_h * HOUR_MS):
        return None
    people = await wiring.reviewers.list_all()
    names = [person.name for person in people if person.active and "reviewer" in person.roles]
    asked = [
        (drill.id, name)
        for drill in plan.drills
        for name in names
        if await _is_asked(wiring, _find_terms(wiring, drill), name)
    ]
    return await plant_drill(wiring, *secrets.choice(asked), SCHEDULE) if asked else None
