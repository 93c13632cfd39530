"""A call tried on the rules in force: which rule decides, and why the others do not. Nothing runs or is recorded."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.core.policy.counters.recalling import hide_amounts
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.external import describe_item, list_wanted
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.redaction import Redacted, redact
from sayso.core.transitions.deciding import find_item
from sayso.features.whatif.explaining import Explanation, Trial, TrialCall, explain
from sayso.runner.agents import AgentManifest
from service.core.operations.masking import find_secrets
from service.core.policy.evaluations import judge_blocking
from service.core.wiring import Wiring


class Tried(NamedTuple):
    """The explanation of a call, with secrets masked in what the rules saw; `scrub` masks them in texts."""

    explanation: Explanation
    scrub: Callable[[str], str]


class PastCall(NamedTuple):
    """The call of a past item, with secrets masked."""

    record: SuspensionRecord
    item: Item
    definition: ToolDefinition | None
    args: JsonObject


async def read_past(wiring: Wiring, name: str) -> PastCall:
    """Return the call of `<suspension>/<item>`, or of the first item of a suspension; raises `NotFound`."""
    suspension_id, _, item_id = name.partition("/")
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    item = find_item(record, item_id) if item_id or not record.items else record.items[0]
    definition = await wiring.runs.definition(item.tool.definition)
    masked = find_secrets(item, definition.parameters if definition is not None else None)
    return PastCall(record, item, definition, masked.args)


async def try_call(
    wiring: Wiring, manifests: Mapping[str, AgentManifest], call: TrialCall, past: PastCall | None = None
) -> Tried:
    """Try a call on the rules in force. It has the facts about the run of the `past` call, and else those it states.

    A registered agent has its context, and no sub-agents. Unchanged masked arguments stand for those of the past call.
    """
    definition, policy = find_definition(manifests, call.agent, call.tool), wiring.rules.policy()
    if past is not None:
        event = describe_item(past.record, past.item, past.item.tool.args if call.args == past.args else call.args)
        event = event.model_copy(update={"tool_name": call.tool, "agent": call.agent})
        known, paths = past.definition, past.item.terms.secrets
    else:
        event = _make_event(call, manifests.get(call.agent))
        known, paths = definition, ()
    judge = partial(wiring.desk.evaluations.judge, caller=f"trial:{event.agent}")
    wanted = await judge(partial(list_wanted, policy, (event,)))
    event = event.model_copy(update={"readings": await wiring.desk.suspensions.recall(wanted)})
    secrets = redact(event.tool_args, known.parameters if known is not None else None, paths)
    explanation = await asyncio.to_thread(judge_blocking, partial(explain, policy, event, definition))
    trials = tuple(_mask(trial, event, secrets) for trial in explanation.trials)
    return Tried(explanation._replace(trials=trials), secrets.scrub)


def find_definition(manifests: Mapping[str, AgentManifest], agent: str, tool: str) -> ToolDefinition | None:
    """Return the tool of the agent, or without an agent the first tool of that name."""
    known = [manifests[agent]] if agent in manifests else [] if agent else manifests.values()
    return next((definition for manifest in known for definition in manifest.tools if definition.name == tool), None)


def _make_event(call: TrialCall, manifest: AgentManifest | None) -> PolicyEvent:
    event = call.as_event(now_ms())
    if manifest is None:
        return event
    context = {**call.context, **manifest.context}
    return event.model_copy(update={"subagent_name": call.subagent or "", "context": context})


def _mask(trial: Trial, event: PolicyEvent, secrets: Redacted) -> Trial:
    masked = {name: value for name, value in secrets.args.items() if trial.saw.get(name) == event.tool_args[name]}
    saw = {name: masked.get(name, value) for name, value in trial.saw.items()}
    return trial._replace(saw=saw, remembered=hide_amounts(trial.remembered, secrets.args))
