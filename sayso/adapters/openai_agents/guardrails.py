"""Input guardrails of OpenAI Agents SDK tools, applied to the arguments that run, including edited ones."""

import copy
import dataclasses
import json
from typing import Any

from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailData
from agents.tool_context import ToolContext

from sayso.canonical_json import JsonObject
from sayso.runner.execution import current_executor
from sayso.runner.protocol import ToolFailed

_REFUSED = "The guardrail {name} refused the arguments, so the call did not run."


def gate_guardrail(guardrail: ToolInputGuardrail[Any], tool: str) -> ToolInputGuardrail[Any]:
    """Return a guardrail that checks the approved arguments, and the model's before. Refusal is the result."""
    name = guardrail.get_name()

    async def check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        executor = current_executor()
        entry = executor.find(data.context.tool_call_id, tool) if executor is not None else None
        if executor is None or entry is None:
            return await guardrail.run(data)
        if entry.result is not None:
            return ToolGuardrailFunctionOutput.allow()  # nothing runs
        output = await guardrail.run(
            dataclasses.replace(data, context=replace_arguments(data.context, entry.call.args))
        )

        async def refuse(_args: JsonObject) -> Any:
            raise ToolFailed(str(output.behavior.get("message") or _REFUSED.format(name=name)))

        if output.behavior["type"] != "allow":
            await executor.run(entry, refuse)
        return output

    return ToolInputGuardrail(guardrail_function=check, name=name)


def replace_arguments(context: ToolContext[Any], args: JsonObject) -> ToolContext[Any]:
    """Return the call's context with these arguments instead of the model's."""
    if context.tool_arguments and json.loads(context.tool_arguments) == args:
        return context
    approved = copy.copy(context)
    approved.tool_arguments = json.dumps(args)
    if context.tool_call is not None:
        approved.tool_call = context.tool_call.model_copy(update={"arguments": approved.tool_arguments})
    approved._function_tool_arguments = None
    return approved
