"""Plant a drill among a reviewer's items."""

import secrets

from sayso.canonical_json import JsonObject
from sayso.clock import HOUR_MS, new_id
from sayso.errors import NotFound
from sayso.policy.asking import describe_action
from sayso.policy.external import describe_begun
from sayso.policy.rules import Action
from sayso.records.events import Event
from sayso.records.items import Drill, ItemDraft, ItemTool, Prompt
from sayso.records.suspensions import RunRef, SuspensionRecord
from sayso.records.terms import RuleTerms
from sayso.records.tool_calls import ToolCall, ToolDefinition
from service.operations.drills.templates import drills_of
from service.wiring import Wiring

SCHEDULE = "clock"
"""The planter of scheduled drills."""


async def plant_drill(wiring: Wiring, template: str, reviewer: str, planted_by: str) -> SuspensionRecord:
    """Ask a reviewer about the false call of a template; raises `NotFound` for an unknown template or reviewer.

    Only this reviewer can decide it. Its run has no agent, nobody is notified, and the permit is void.
    """
    drill = drills_of(wiring.settings.drills).find(template)
    found = await wiring.reviewers.find(reviewer)
    if found is None or not found.active:
        raise NotFound(f"There is no active reviewer {reviewer[:80]!r}. `sayso people list` lists them.")
    definition = ToolDefinition(name=drill.tool, description=drill.description)
    await wiring.runs.save_definitions([definition])
    item = ItemDraft(
        call_id="",
        tool=ItemTool(name=drill.tool, args=drill.args, definition=definition.digest),
        prompt=Prompt(reason=drill.reason),
        terms=RuleTerms(reviewers=(reviewer,), timeout_s=drill.timeout_s),
        rule_id=drill.rule,
        rule_version=wiring.rules.policy().version,
        drill=Drill(template=drill.id, signs=drill.signs, planted_by=planted_by),
    )
    run_id = new_id("run")
    run = RunRef(id=run_id, agent=drill.agent, owner=drill.requested_by, thread_id=run_id, title=drill.title)
    return (await wiring.desk.plant(run, item, _describe_judged(run, item))).record


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
    if not plan.every_h or not await wiring.recents.drills.take_turn(plan.every_h * HOUR_MS):
        return None
    names = [one.name for one in await wiring.reviewers.list_all() if one.active and "reviewer" in one.roles]
    if not names:
        return None
    return await plant_drill(wiring, secrets.choice(plan.drills).id, secrets.choice(names), SCHEDULE)
