"""Whether a reviewer approves without looking, by a sequential test of drills (Wald's SPRT).

The drills file: templates of false calls, and how often one is planted.

    every_h: 0
    drills:
      - id: unknown-recipient
        agent: support
        requested_by: support-bot
        tool: refund
        args: {order: A-7731, amount: 480, recipient: DE02120300000000202051}
        signs: ["No order A-7731 exists."]

Every fault is reported with its line; a program with a faulty file does not start.

Plant a drill among a reviewer's items.
"""

import secrets
from collections.abc import Sequence
from functools import cache
from math import log
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import HOUR_MS, new_id
from sayso.core.policy.decisions import describe_action, without_confirmation
from sayso.core.policy.external import describe_begun
from sayso.core.policy.managers import MANAGERS
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import OUR_NAMES
from sayso.core.records.items import Drill, ItemDraft, ItemTool, Prompt
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from sayso.core.records.terms import LONGEST_WAIT_S, RuleTerms, group_of, merge_stages
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import InvalidInput, NotFound
from service.core.settings.receivers import read_plan
from service.core.wiring import Wiring
from service.features.control.store import Recents

CAREFUL = 0.1  # the share of false calls that a careful reviewer approves
CARELESS = 0.6  # the share that a careless one approves at least
_FALSE_ALARM = 0.005
_MISS = 0.05
_FLAG = log((1 - _MISS) / _FALSE_ALARM)
_CLEAR = log(_MISS / (1 - _FALSE_ALARM))
_APPROVED = log(CARELESS / CAREFUL)
_DENIED = log((1 - CARELESS) / (1 - CAREFUL))


def is_flagged(approved: Sequence[bool]) -> bool:
    """Return whether the last test that ended found a careless reviewer; after its end, the next test begins.

    `approved` says of each drill whether its false call was approved, the oldest first.
    """
    flagged, evidence = False, 0.0
    for missed in approved:
        evidence += _APPROVED if missed else _DENIED
        if evidence >= _FLAG or evidence <= _CLEAR:
            flagged, evidence = evidence > 0, 0.0
    return flagged


class InvalidDrills(InvalidInput):
    """The drills file is invalid; correct it and start again."""


class DrillTemplate(BaseModel):
    """A false call that looks like a real one, and the signs by which a careful reviewer knows it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern="^[a-z][a-z0-9-]{0,39}$")
    agent: str = Field(min_length=1, max_length=200)
    requested_by: str = Field(min_length=1, max_length=64)
    title: str = Field(default="", max_length=200)
    tool: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=2000)
    args: JsonObject
    rule: str | None = Field(default=None, max_length=100)
    reason: str | None = Field(default=None, max_length=2000)
    timeout_s: int | None = Field(default=None, ge=60, le=LONGEST_WAIT_S)
    signs: tuple[str, ...] = Field(min_length=1, max_length=20)


class DrillPlan(BaseModel):
    """The content of the file. Every `every_h` hours one drill is planted by chance; 0 plants none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every_h: int = Field(default=0, ge=0, le=8760)
    drills: tuple[DrillTemplate, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        ids = [drill.id for drill in self.drills]
        if twice := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"two drills have the id {min(twice)}; rename one")
        if self.every_h and not self.drills:
            raise ValueError("every_h plants drills, but the file has none; add one or set every_h: 0")
        if ours := {drill.requested_by for drill in self.drills} & OUR_NAMES:
            raise ValueError(f"requested_by {min(ours)} is a name of Sayso's own; choose another")
        return self

    def find(self, template: str) -> DrillTemplate:
        """Return the template of that id; raises `NotFound`."""
        for drill in self.drills:
            if drill.id == template:
                return drill
        known = ", ".join(drill.id for drill in self.drills) or "none; set SAYSO_DRILLS to a file with some"
        raise NotFound(f"There is no drill {template[:80]!r}. Drills in the file: {known}.")


@cache
def drills_of(path: Path | None) -> DrillPlan:
    """Return the plan of a file, read once in each process."""
    return read_drills(path)


def read_drills(path: Path | None) -> DrillPlan:
    """Return the plan of a file, an empty one without a file; raises `InvalidDrills` with all faults."""
    return read_plan(path, DrillPlan, "SAYSO_DRILLS", InvalidDrills)


_TIMEOUT_S = 14_400  # the time to decide a drill without a rule
SCHEDULE = "clock"  # the planter of scheduled drills


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
    call = ToolCall(call_id=item.call_id, index=0, name=item.tool.name, args=item.tool.args)
    rules: JsonObject = {"policy_id": item.rule_id, "matched_rules": [item.rule_id] if item.rule_id else []}
    rules["rule_version"] = item.rule_version
    judged = describe_action(call, Action.REQUEST_APPROVAL, item.prompt.reason or "", rules)
    return (await wiring.desk.plant(run, item, (describe_begun(run, [call.name], step=1), judged))).record


def _find_terms(wiring: Wiring, drill: DrillTemplate) -> RuleTerms:
    """Return the terms under which the rule of a template asks, those of any call without a rule.

    Nobody is notified, no number is there to match, and no draw is made. Names that follow the call are left out.
    """
    rules = wiring.rules.policy().rules
    asking = (rule.terms for rule in rules if rule.rule_id == drill.rule and rule.action is Action.REQUEST_APPROVAL)
    terms = merge_stages(next(asking, RuleTerms(timeout_s=_TIMEOUT_S)))
    named = tuple(name for name in terms.reviewers if name not in MANAGERS)
    update: dict[str, object] = {"channels": (), "match_number": False, "notify_requester": False, "sample": None}
    update |= {"reviewers": named} if len(named) < len(terms.reviewers) else {}
    update |= {"timeout_s": drill.timeout_s, "timeout": None} if drill.timeout_s is not None else {}
    return without_confirmation(terms.model_copy(update=update))


async def _is_asked(wiring: Wiring, terms: RuleTerms, reviewer: str) -> bool:
    if not terms.reviewers or reviewer in terms.reviewers:
        return True
    actor = await wiring.reviewers.find_actor(reviewer, "api")
    return not {group_of(name) for name in terms.reviewers}.isdisjoint(actor.groups)


async def plant_scheduled(wiring: Wiring) -> SuspensionRecord | None:
    """Plant a random template for a random active reviewer, if the schedule of the drills file is due."""
    plan = drills_of(wiring.settings.drills)
    if not plan.every_h or not await wiring.part(Recents).drills.take_turn(plan.every_h * HOUR_MS):
        return None
    names = await wiring.reviewers.list_deciders()
    asked = [
        (drill.id, name)
        for drill in plan.drills
        for name in names
        if await _is_asked(wiring, _find_terms(wiring, drill), name)
    ]
    return await plant_drill(wiring, *secrets.choice(asked), SCHEDULE) if asked else None
