"""Undoing of calls: the tool that undoes those of another, and the item that offers it to people."""

import json
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import Answer, ItemDraft, ItemTool, Prompt
from sayso.core.records.judgements import read_veto_s
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import Fallback, Quorum, RuleTerms
from sayso.core.records.tools import ToolDefinition
from sayso.core.records.undoing import UNDO_SUFFIX, Reversal, UndoneCall
from sayso.errors import InvalidInput
from sayso.runner.agents import Agent
from sayso.runner.batches import BatchCall, is_small
from sayso.runner.tools import CallContext, Tool

_SHOWN_CHARS = 2_000
_IN_VAIN = Fallback(message="Nobody undid it in time.")


@dataclass(frozen=True)
class UndoTool(Tool):
    """A tool that undoes a call. Its arguments are the call's own, which were checked before it ran, and its result."""

    def find_fault(self, args: JsonObject, *, ignore: str | None = None) -> str | None:
        return None

    def read(self, args: JsonObject) -> BaseModel | None:
        return None

    def bind(self, args: JsonObject, context: CallContext, read: BaseModel | None = None) -> dict[str, Any]:
        return {"arguments": args["arguments"], "result": args["result"]}


def make_undo_tool(tool: Tool) -> Tool:
    """Return the tool that undoes calls of another; raises `InvalidInput` for one that has no undo."""
    undo = tool.undo
    if undo is None:
        raise InvalidInput(f"The worker's agent has no undo of {tool.name}.")

    return UndoTool(definition=_define_undo(tool), function=undo, timeout_s=tool.timeout_s)


def make_undoing(agent: Agent, reversal: Reversal) -> Agent:
    """Return the agent with the one tool that undoes the call, if it still has that; people settle its doubts."""
    tool = agent.tools_by_name.get(reversal.tool)
    tools = (make_undo_tool(tool),) if tool is not None and tool.undo is not None else ()
    return replace(agent, tools=tools, interaction="desk")


def offer_undo(agent: Agent, record: SuspensionRecord, entry: BatchCall, at_ms: int) -> ItemDraft:
    """Return the item that lets people undo a call that ran under a veto."""
    call, tool, veto = entry.call, agent.tools_by_name[entry.call.name], entry.veto
    if veto is None:
        raise InvalidInput(f"No rule lets {call.name} run with a veto.")
    definition = _define_undo(tool)
    body = (
        f"{call.name} ran at once, without asking, because a rule allows it with a veto. "
        "Undo (approve) has it undone. Keep (deny), or no decision in time: it stays as it is."
    )
    return ItemDraft(
        call_id=call.call_id,
        tool=ItemTool(name=definition.name, args=_show_call(entry), definition=definition.digest),
        subagent=call.subagent,
        prompt=Prompt(title=f"Undo {call.name}?"[:200], body=body, reason=entry.reason[:2000]),
        allowed=(Answer.APPROVE, Answer.DENY),
        terms=_fit_terms(veto.terms, (*veto.terms.secrets, *tool.definition.traits.secrets)),
        rule_id=entry.rule_id,
        rule_version=veto.rule_version,
        reverses=Reversal(
            run_id=record.run.id,
            suspension_id=record.id,
            tool=call.name,
            call_id=call.call_id,
            index=call.index,
            at_ms=at_ms,
        ),
    )


def keep_call(entry: BatchCall) -> UndoneCall:
    """Return the exact arguments and the result of a call that ran."""
    return UndoneCall(arguments=entry.call.args, result=entry.result.output if entry.result is not None else None)


def _define_undo(tool: Tool) -> ToolDefinition:
    schema = dict(tool.definition.parameters)
    shared: JsonObject = {name: schema.pop(name) for name in ("$defs", "definitions") if name in schema}
    properties: JsonObject = {"arguments": schema, "result": {}}
    parameters: JsonObject = {"type": "object", "properties": properties, "required": ["arguments"], **shared}
    description = f"Undo a call of {tool.name}."
    return ToolDefinition(name=f"{tool.name}{UNDO_SUFFIX}", description=description, parameters=parameters)


def _show_call(entry: BatchCall) -> JsonObject:
    """Return the arguments and the result as people see them: the beginning of a large result."""
    result, output = entry.result, entry.result.output if entry.result is not None else None
    if result is not None and not is_small(result):
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        output = f"{text[:_SHOWN_CHARS]}… [{len(text)} characters in all]"
    return {"arguments": entry.call.args, "result": output}


def _fit_terms(terms: RuleTerms, secrets: tuple[str, ...]) -> RuleTerms:
    """Return the terms for undoing: one of the rule's reviewers is enough, within the veto, with the rule's step-up."""
    named = terms.named if terms.reviewers or terms.stages else ()
    update: dict[str, Any] = {
        "reviewers": named,
        "quorum": Quorum(),
        "timeout_s": read_veto_s(terms.veto or ""),
        "fallback": _IN_VAIN,
        "rounds": 0,
        "secrets": tuple(dict.fromkeys(f"arguments.{path}" for path in secrets)),
    }
    kept = ("no_self_approval", "no_maker_approval", "start_by_s", "step_up", "channels", "urgent", "notify_requester")
    return RuleTerms(**({name: getattr(terms, name) for name in kept} | update))
