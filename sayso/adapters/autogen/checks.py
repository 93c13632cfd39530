"""Refuse an AutoGen agent or team of which a member could act without anybody being asked."""

from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent, UserProxyAgent
from autogen_agentchat.base import OrTerminationCondition
from autogen_agentchat.conditions import HandoffTermination
from autogen_agentchat.teams import BaseGroupChat, Swarm
from autogen_core.tools import StaticWorkbench

from sayso.adapters.reachability import reach
from sayso.errors import InvalidInput

_KIND = (
    "build gives a {kind}, which chooses the next speaker itself and would not come back to the agent that waits. "
    "Make it a Swarm."
)
_ENDLESS = (
    "The Swarm does not end when an agent waits. Give it "
    "termination_condition=HandoffTermination(DESK), alone or joined to others with |."
)
_UNGATED = "The agent {name!r} has tools that nobody would be asked about ({tools}). Put it through gated(…)."
_UNKNOWN = (
    "The agent {name!r} is a {kind}, which could act without anybody being asked. Use an AssistantAgent put "
    "through gated(…)."
)
_INNER = (
    "The tool {tool!r} calls an agent that has tools of its own ({names}), and nobody would be asked about those. "
    "Give them to a gated agent and hand off to it."
)


async def check_team(runnable: Any, gated: Collection[BaseChatAgent], inner: Collection[Any], desk: str) -> None:
    """Raise `InvalidInput` unless every member is gated or has no tools, and the team stops at the desk.

    `inner` are the assistants within the gated agents.
    """
    if isinstance(runnable, BaseGroupChat):
        if not isinstance(runnable, Swarm):
            raise InvalidInput(_KIND.format(kind=type(runnable).__name__))
        if not any(one._target == desk for one in _list_ends(runnable._termination_condition)):
            raise InvalidInput(_ENDLESS)
        members: list[Any] = runnable._participants
    else:
        members = [runnable]
    for member in members:
        if not any(member is one for one in gated):
            await _check_ungated(member)
    for assistant in inner:
        await _check_tools(assistant)


async def _check_ungated(member: Any) -> None:
    """Let only those stay ungated that can do nothing but speak."""
    if isinstance(member, AssistantAgent):
        if names := [name async for name in _list_names(member)]:
            raise InvalidInput(_UNGATED.format(name=member.name, tools=", ".join(names)))
    elif not isinstance(member, UserProxyAgent):
        raise InvalidInput(_UNKNOWN.format(name=getattr(member, "name", "?"), kind=type(member).__name__))


async def _check_tools(assistant: AssistantAgent) -> None:
    """Refuse a tool that runs an agent or a team which can act by itself."""
    for workbench in assistant._workbench or ():
        for tool in workbench._tools if isinstance(workbench, StaticWorkbench) else ():
            for found in reach(tool.run):
                if names := [name async for name in _list_inner(found)]:
                    raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))


async def _list_inner(found: Any) -> AsyncIterator[str]:
    """Yield what an agent or a team could run by itself."""
    if isinstance(found, BaseGroupChat):
        for member in found._participants:
            async for name in _list_inner(member):
                yield name
    elif isinstance(found, AssistantAgent):
        async for name in _list_names(found):
            yield name
    elif isinstance(found, BaseChatAgent) and not isinstance(found, UserProxyAgent):
        yield f"{type(found).__name__} {found.name}"


async def _list_names(assistant: AssistantAgent) -> AsyncIterator[str]:
    for workbench in assistant._workbench or ():
        for tool in await workbench.list_tools():
            yield tool["name"]


def _list_ends(condition: Any) -> Iterator[HandoffTermination]:
    """Yield the handoffs of which each ends the team by itself."""
    if isinstance(condition, HandoffTermination):
        yield condition
    elif isinstance(condition, OrTerminationCondition):
        for one in condition._conditions:
            yield from _list_ends(one)
