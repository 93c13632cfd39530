"""What an agent sends to propose a mandate: the calls of its plan."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from sayso.core.records.base import Immutable
from sayso.core.records.envelopes import (
    ALL_ARGUMENTS,
    LONGEST_GRANT_S,
    SHORTEST_GRANT_S,
    Amount,
    ArgumentName,
    Bounds,
    FreeArgument,
)
from sayso.core.records.permissions import Outside
from sayso.core.records.tools import NAME_CHARACTERS, ToolName

MOST_MANDATED_CALLS = 1_000
MOST_TOOLS = 50
MOST_PLAN_CHARS = 20_000

HostPattern = Annotated[
    str, Field(min_length=1, max_length=253, description="A host such as api.example.com, or *.example.com.")
]
_HOST = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.:-]*[a-z0-9_])?")


class PlannedSum(Immutable):
    """The argument that calls add up, and the most in sum."""

    of: ArgumentName
    max: Amount | None = Field(default=None, description="Null for no limit of its own, beside that of the plan.")


class PlannedCalls(Bounds):
    """Calls of one tool. Arguments without a limit must be absent, except those in `free` and the one of `sum`."""

    tool: ToolName = Field(description=f"A tool of the agent; its name has {NAME_CHARACTERS}.")
    subagent: str = Field(default="", max_length=200, description="The sub-agent that makes the calls, if any.")
    hosts: dict[ArgumentName, Annotated[tuple[HostPattern, ...], Field(min_length=1, max_length=100)]] = Field(
        default_factory=dict, max_length=20, description="Arguments that must be HTTP URLs of these hosts."
    )
    within: dict[ArgumentName, Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default_factory=dict, max_length=20, description="Arguments that must be paths in this folder or below it."
    )
    free: tuple[FreeArgument, ...] = Field(
        default=(), max_length=50, description="Arguments that may have any value or be absent; `args` for all."
    )
    count: int | None = Field(default=None, ge=1, le=MOST_MANDATED_CALLS, description="The most of these calls.")
    sum: PlannedSum | None = None
    ask: bool = Field(default=False, description="Ask a person about each of these calls, as without the plan.")

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.equal, *self.at_most, *self.one_of, *self.hosts, *self.within)

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        seen: set[str] = set()
        for path in (*self.paths, *self.free):
            if path in seen:
                raise ValueError(f"{path} has two limits; keep one of equal, at_most, one_of, hosts, within and free")
            seen.add(path)
        for path in seen - {ALL_ARGUMENTS}:
            steps = path.split(".")
            above = (".".join(steps[:count]) for count in range(2, len(steps)))
            inside = next((other for other in above if other in seen), None)
            if inside is not None:
                raise ValueError(f"{path} is a part of {inside}, which has a limit, too; keep one of them")
        for host in (pattern for patterns in self.hosts.values() for pattern in patterns):
            if not _HOST.fullmatch(host):
                raise ValueError(f"{host!r} is not a host in lower case; write api.example.com or *.example.com")
        if self.ask and (self.count is not None or self.sum is not None):
            raise ValueError("a person is asked about each of these calls; leave out `count` and `sum`, or `ask`")
        return self


def check_plan_size(tools: Iterable[Any]) -> None:
    """Raise `ValueError` for more text than a person reads in one plan, before anything is made of it."""
    nodes: list[Any] = [
        {key: value for key, value in tool.items() if key != "definition"} for tool in tools if isinstance(tool, dict)
    ]
    size = 0
    while nodes:
        node = nodes.pop()
        size += len(node) if isinstance(node, str) else 1
        if isinstance(node, dict):
            nodes += [*node, *node.values()]
        elif isinstance(node, list | tuple):
            nodes += node
        if size > MOST_PLAN_CHARS:
            limit = f"the limit is {MOST_PLAN_CHARS:,} characters in its tools, without definitions"
            raise ValueError(f"The plan is too long to read: {limit}. Name fewer calls, or shorter values.")


class Plan(Immutable):
    """The calls that an agent wants to make without being asked about each."""

    title: str = Field(default="", max_length=200, description="What the plan is for.")
    reason: str = Field(default="", max_length=2000, description="Why the agent wants it, for the reviewer.")
    for_s: int = Field(ge=SHORTEST_GRANT_S, le=LONGEST_GRANT_S, description="How long it lasts, from the approval.")
    count: int = Field(ge=1, le=MOST_MANDATED_CALLS, description="The most calls of all tools together.")
    sum: Amount | None = Field(default=None, description="The most that the sums of all tools may be together.")
    tools: tuple[PlannedCalls, ...] = Field(min_length=1, max_length=MOST_TOOLS)
    outside: Outside = Field(
        default=Outside.ASK,
        description="What happens to calls outside the plan: a person is asked, or they are denied.",
    )

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        if self.sum is not None and not any(calls.sum is not None for calls in self.tools):
            raise ValueError("sum limits nothing: no tool says which argument to add up; add `sum` to a tool")
        return self
