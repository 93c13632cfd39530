"""Have the input guardrails of an OpenAI Agents SDK tool check the arguments that really run, edited ones too."""

import copy
import dataclasses
import json
from typing import Any

from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailData
from agents.tool_context import ToolContext

from sayso.canonical_json import JsonObject
from sayso.runner.execution import current_executor
from sayso.runner.protocol import ToolFailed

_REFUSED = "The guardrail {name} refused the arguments, so the call was not run."


def gate_guardrail(guardrail: ToolInputGuardrail[Any], tool: str) -> ToolInputGuardrail[Any]:
    """Return the guardrail so that it checks what was decided, and so that its refusal is the call's result.

    Before people have decided it checks what the model gave.
    """
    name = guardrail.get_name()

    async def check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        executor = current_executor()
        one = executor.find(data.context.tool_call_id, tool) if executor is not None else None
        if executor is None or one is None:
            return await guardrail.run(data)
        if one.result is not None:
            return ToolGuardrailFunctionOutput.allow()  # it has ended, and nothing runs
        output = await guardrail.run(dataclasses.replace(data, context=put_in(data.context, one.call.args)))

        async def refuse(_args: JsonObject) -> Any:
            raise ToolFailed(str(output.behavior.get("message") or _REFUSED.format(name=name)))

        if output.behavior["type"] != "allow":
            await executor.run(one, refuse)
        return output

    return ToolInputGuardrail(guardrail_function=check, name=name)


def put_in(context: ToolContext[Any], args: JsonObject) -> ToolContext[Any]:
    """Return the context of the call with these arguments in the place of the model's."""
    if context.tool_arguments and json.loads(context.tool_arguments) == args:
        return context
    decided = copy.copy(context)
    decided.tool_arguments = json.dumps(args)
    if context.tool_call is not None:
        decided.tool_call = context.tool_call.model_copy(update={"arguments": decided.tool_arguments})
    decided._function_tool_arguments = None
    return decided
