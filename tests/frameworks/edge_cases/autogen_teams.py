"""AutoGen teams in which a member, or an agent in a tool, could run tools without review."""

from functools import partial
from typing import Any

from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent, UserProxyAgent
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm
from autogen_agentchat.tools import AgentTool, TeamTool
from autogen_core import CancellationToken

from sayso.adapters.autogen import DESK, gate
from tests.frameworks.edge_cases.autogen import INFO, Asker, fetch
from tests.frameworks.edge_cases.local_runs import print_json, refusal

ENDS = HandoffTermination(DESK) | MaxMessageTermination(9)


def agent(name: str, *tools: Any) -> AssistantAgent:
    return AssistantAgent(name, model_client=Asker([], INFO), tools=list(tools))


def send_money(to: str) -> str:
    """Send money to somebody."""
    return to


PAYER = agent("payer", send_money)


async def delegate(task: str) -> str:
    """Have another agent do it."""
    response = await PAYER.on_messages([], CancellationToken())
    return f"{task}: {response.chat_message}"


TEAMS: dict[str, Any] = {
    "gated": lambda gated: Swarm([gated(agent("a", fetch)), agent("b")], termination_condition=ENDS),
    "with a person": lambda gated: Swarm([gated(agent("a", fetch)), UserProxyAgent("u")], termination_condition=ENDS),
    "ungated": lambda gated: Swarm([gated(agent("a", fetch)), agent("b", send_money)], termination_condition=ENDS),
    "alone": lambda _gated: agent("b", send_money),
    "endless": lambda gated: Swarm([gated(agent("a", fetch))], termination_condition=MaxMessageTermination(9)),
    "round robin": lambda gated: RoundRobinGroupChat([gated(agent("a", fetch))], termination_condition=ENDS),
    "selector": lambda gated: SelectorGroupChat(
        [gated(agent("a", fetch)), agent("b")], Asker([], INFO), termination_condition=ENDS
    ),
    "society": lambda gated: Swarm(
        [gated(agent("a", fetch)), SocietyOfMindAgent("s", RoundRobinGroupChat([agent("b")]), Asker([], INFO))],
        termination_condition=ENDS,
    ),
    "agent tool": lambda gated: gated(agent("a", AgentTool(PAYER))),
    "team tool": lambda gated: gated(agent("a", TeamTool(RoundRobinGroupChat([PAYER]), "ask_team", "Asks a team."))),
    "function": lambda gated: gated(agent("a", delegate)),
    "speaker": lambda gated: gated(agent("a", AgentTool(agent("speaker")))),
}

if __name__ == "__main__":
    print_json({name: refusal(partial(gate, build, name="bot")) for name, build in TEAMS.items()})
