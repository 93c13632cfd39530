"""A parsimony-agents bot. Its model is a LiteLLM provider."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # without this, the import uses the network

from litellm.llms.custom_llm import CustomLLM
from parsimony_agents import Agent
from parsimony_agents.agent.failure import DefaultPolicy, FailureKind
from parsimony_agents.agent.failure.kinds import Action
from parsimony_agents.agent.failure.suspension import SuspensionRequest
from parsimony_agents.tools import Tools

from sayso.adapters.parsimony import gate
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn
from tests.frameworks.parsimony_parts import add_model, make_chunk, make_tool, read_text

SECRET = "the-workers-and-the-agent-share-this"
MONEY = {"to": {"type": "string"}, "amount": {"type": "integer"}}
MAIL = {"to": {"type": "string"}, "text": {"type": "string"}}


class ScriptedModel(CustomLLM):
    """Plays the next turn, counted in the messages. After the last turn it repeats its results."""

    async def astreaming(self, *_args: Any, **given: Any) -> AsyncIterator[Any]:
        messages = [(one, read_text(one)) for one in given["messages"]]
        turns = parse_script(next(text for _, text in messages if '"turns"' in text))
        turn = len([one for one, _ in messages if one["role"] == "assistant"])
        wait_before_turn(turn)
        if turn < len(turns):
            calls = [(one["tool"], one["args"]) for one in turns[turn]]
        else:
            results = " | ".join(
                text
                for one, text in messages[1:]
                if one["role"] in ("tool", "user") and "<context" not in text and '"turns"' not in text
            )
            calls = [("return_done", {"summary": f"results: {results}"})]
        if calls and calls[0][0] == "stop_the_run":
            raise asyncio.CancelledError
        if not calls:
            yield make_chunk(text="Nothing to call.")
        for place, (name, args) in enumerate(calls):
            function = {"name": name, "arguments": json.dumps(args)}
            yield make_chunk(
                tool_use={"id": f"call_{turn}_{place}", "type": "function", "function": function, "index": place}
            )
        yield make_chunk(is_finished=True, finish_reason="tool_calls" if calls else "stop")


add_model("player", ScriptedModel())


async def send_money(to: str, amount: int, **_context: Any) -> str:
    return await asyncio.to_thread(record_effect, "send_money", to=to, amount=amount)


async def send_mail(to: str, text: str, **_context: Any) -> str:
    return await asyncio.to_thread(record_effect, "send_mail", to=to, text=text)


async def look_up(what: str, **_context: Any) -> str:
    if what == "unclear":
        raise SuspensionRequest("Which of the two?", choices=["left", "right"])
    return await asyncio.to_thread(record_effect, "look_up", what=what)


class Policy(DefaultPolicy):
    """Ends with a partial result if the model only talks."""

    def decide(self, failure: Any, state: Any) -> Any:
        return Action.stop if failure.kind is FailureKind.no_progress else super().decide(failure, state)


def make_agent() -> Agent:
    agent = Agent(model="player/script", instructions="Play.", policy=Policy(), suspension_secret=SECRET)
    tools = [
        make_tool(send_money, describe_send_money(), MONEY),
        make_tool(send_mail, "Send a mail.", MAIL),
        make_tool(look_up, "Look something up.", {"what": {"type": "string"}}),
    ]
    agent.system_tools = agent.tools = agent.system_tools + Tools(tools)
    return agent


bot = gate(make_agent, name="bot", idempotent={"look_up"})
