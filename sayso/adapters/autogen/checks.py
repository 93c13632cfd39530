"""Checks that refuse an AutoGen agent or team whose members could run tools ungated."""

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
    "build returned a {kind}, which selects the next speaker itself and may not return to the waiting agent. "
    "Use a Swarm."
)
_ENDLESS = (
    "The Swarm does not end when an agent waits. Pass "
    "termination_condition=HandoffTermination(DESK), alone or joined to others with |."
)
_UNGATED = "The agent {name!r} has tools that would run without review ({tools}). Wrap it in gated(…)."
_UNKNOWN = (
    "The agent {name!r} is a {kind}, which could run tools without review. Use an AssistantAgent wrapped in gated(…)."
)
_INNER = (
    "The tool {tool!r} calls an agent with tools of its own ({names}), which would run without review. "
    "Add them to a gated agent and hand off to it."
)


async def check_team(runnable: Any, gated: Collection[BaseChatAgent], inner: Collection[Any], desk: str) -> None:
    """Raise `InvalidInput` unless each member is gated (`inner`) or has no tools, and the team stops at the desk."""
    if isinstance(runnable, BaseGroupChat):
        if not isinstance(runnable, Swarm):
            raise InvalidInput(_KIND.format(kind=type(runnable).__name__))
        if not any(end._target == desk for end in _list_ends(runnable._termination_condition)):
            raise InvalidInput(_ENDLESS)
    for member in _list_members(runnable):
        if not any(member is agent for agent in gated):
            await _check_ungated(member)
    for assistant in inner:
        await _check_tools(assistant)


def list_assistants(runnable: Any, inner: Collection[AssistantAgent]) -> list[AssistantAgent]:
    """Return the members that ask a model: those that are gated (`inner`), and those without tools."""
    return [*inner, *(member for member in _list_members(runnable) if isinstance(member, AssistantAgent))]


def _list_members(runnable: Any) -> list[Any]:
    members: list[Any] = runnable._participants if isinstance(runnable, BaseGroupChat) else [runnable]
    return members


async def _check_ungated(member: Any) -> None:
    """Refuse an ungated member that has tools or is of an unknown type."""
    if isinstance(member, AssistantAgent):
        if names := [name async for name in _list_names(member)]:
            raise InvalidInput(_UNGATED.format(name=member.name, tools=", ".join(names)))
    elif not isinstance(member, UserProxyAgent):
        raise InvalidInput(_UNKNOWN.format(name=getattr(member, "name", "?"), kind=type(member).__name__))


async def _check_tools(assistant: AssistantAgent) -> None:
    for workbench in assistant._workbench or ():
        for tool in workbench._tools if isinstance(workbench, StaticWorkbench) else ():
            for target in reach(tool.run):
                if names := [name async for name in _list_inner(target)]:
                    raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))


async def _list_inner(target: Any) -> AsyncIterator[str]:
    if isinstance(target, BaseGroupChat):
        for member in target._participants:
            async for name in _list_inner(member):
                yield name
    elif isinstance(target, AssistantAgent):
        async for name in _list_names(target):
            yield name
    elif isinstance(target, BaseChatAgent) and not isinstance(target, UserProxyAgent):
        yield f"{type(target).__name__} {target.name}"


async def _list_names(assistant: AssistantAgent) -> AsyncIterator[str]:
    for workbench in assistant._workbench or ():
        for tool in await workbench.list_tools():
            yield tool["name"]


def _list_ends(condition: Any) -> Iterator[HandoffTermination]:
    """Yield the handoff conditions that each end the team alone."""
    if isinstance(condition, HandoffTermination):
        yield condition
    elif isinstance(condition, OrTerminationCondition):
        for part in condition._conditions:
            yield from _list_ends(part)
