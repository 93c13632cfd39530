"""A Pydantic AI bot."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from sayso.adapters.pydantic_ai import gate
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn


def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Return the next turn, counted in the history."""
    prompt = next(p for m in messages for p in m.parts if isinstance(p, UserPromptPart))
    turn = sum(isinstance(one, ModelResponse) for one in messages)
    turns = parse_script(str(prompt.content))
    wait_before_turn(turn)
    if turn < len(turns):
        return ModelResponse(
            [ToolCallPart(c["tool"], c["args"], f"call_{turn}_{i}") for i, c in enumerate(turns[turn])]
        )
    results = [str(p.content) for m in messages for p in m.parts if p.part_kind == "tool-return"]
    return ModelResponse([TextPart("results: " + " | ".join(results))])


agent = Agent(FunctionModel(play))


@agent.tool_plain(description=describe_send_money())
def send_money(to: str, amount: int) -> str:
    """Send money to somebody."""
    return record_effect("send_money", to=to, amount=amount)


@agent.tool_plain
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return record_effect("send_mail", to=to, text=text)


@agent.tool_plain
def look_up(what: str) -> str:
    """Look something up."""
    return record_effect("look_up", what=what)


bot = gate(agent, name="bot", idempotent={"look_up"})
