"""An AutoGen bot."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelInfo,
    RequestUsage,
    UserMessage,
)
from autogen_core.tools import FunctionTool

from sayso.adapters.autogen import gate
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn

NO_USAGE = RequestUsage(prompt_tokens=0, completion_tokens=0)


class ScriptedModel(ChatCompletionClient):
    """Plays the next turn, counted in the messages."""

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False
        )

    async def create(self, messages: Sequence[Any], **_more: Any) -> CreateResult:
        script = next(one for one in messages if isinstance(one, UserMessage) and '"turns"' in str(one.content))
        turns = parse_script(str(script.content))
        asked = [one for one in messages if isinstance(one, AssistantMessage) and isinstance(one.content, list)]
        turn = len([one for one in asked if not any("transfer" in call.name for call in one.content)])
        wait_before_turn(turn)
        if turn < len(turns):
            calls = self.spread(turns[turn], turn)
            return CreateResult(finish_reason="function_calls", content=calls, usage=NO_USAGE, cached=False)
        results = [one for one in messages if isinstance(one, FunctionExecutionResultMessage)]
        text = " | ".join(str(part.content) for one in results for part in one.content)
        return CreateResult(finish_reason="stop", content=f"results: {text}", usage=NO_USAGE, cached=False)

    def spread(self, turn: list[dict[str, Any]], index: int) -> list[FunctionCall]:
        return [
            FunctionCall(id=f"call_{index}_{i}", name=c["tool"], arguments=json.dumps(c["args"]))
            for i, c in enumerate(turn)
        ]

    def create_stream(self, *_args: Any, **_more: Any) -> Any:
        raise TypeError("This model does not stream.")

    async def close(self) -> None:
        return None

    def actual_usage(self) -> RequestUsage:
        return NO_USAGE

    def total_usage(self) -> RequestUsage:
        return NO_USAGE

    def count_tokens(self, *_args: Any, **_more: Any) -> int:
        return 0

    def remaining_tokens(self, *_args: Any, **_more: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Mapping[str, Any]:
        info: Mapping[str, Any] = self.model_info
        return info


def send_money(to: str, amount: int) -> str:
    return record_effect("send_money", to=to, amount=amount)


def send_mail(to: str, text: str) -> str:
    return record_effect("send_mail", to=to, text=text)


def look_up(what: str) -> str:
    return record_effect("look_up", what=what)


def make_agent(name: str = "assistant", **options: Any) -> AssistantAgent:
    tools: Any = [
        FunctionTool(send_money, description=describe_send_money()),
        FunctionTool(send_mail, description="Send a mail."),
        FunctionTool(look_up, description="Look something up."),
    ]
    return AssistantAgent(name, model_client=ScriptedModel(), tools=tools, max_tool_iterations=10, **options)


bot = gate(lambda gated: gated(make_agent()), name="bot", idempotent={"look_up"})
