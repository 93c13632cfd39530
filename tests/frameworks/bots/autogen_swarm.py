"""An AutoGen Swarm bot: the first agent hands off to the one with the tools."""

from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination, TextMessageTermination
from autogen_agentchat.teams import Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult

from sayso.adapters.autogen import DESK, gate
from tests.frameworks.bots.autogen import NO_USAGE, ScriptedModel, make_agent


class Greeter(ScriptedModel):
    """Hands off at once."""

    async def create(self, messages: Any, **_more: Any) -> CreateResult:
        call = FunctionCall(id="call_greet", name="transfer_to_assistant", arguments="{}")
        return CreateResult(finish_reason="function_calls", content=[call], usage=NO_USAGE, cached=False)


def build(gated: Any) -> Swarm:
    greeter = gated(AssistantAgent("greeter", model_client=Greeter(), handoffs=["assistant"]))
    ends = HandoffTermination(DESK) | TextMessageTermination("assistant")
    return Swarm([greeter, gated(make_agent())], termination_condition=ends)


bot = gate(build, name="bot", idempotent={"look_up"})
