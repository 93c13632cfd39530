"""Agents: instructions, tools, budgets, and the effect of a denial on their runs."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from pydantic import Field

from sayso.core.canonical_json import JsonObject, check_json, digest_json
from sayso.core.records.base import Immutable
from sayso.core.records.suspensions import Origin
from sayso.core.records.terms import LONGEST_WAIT_S, Fallback, FallbackAction
from sayso.core.records.tools import ToolDefinition, find_name_fault
from sayso.errors import InvalidInput, SaysoError
from sayso.runner.models import Model
from sayso.runner.tools import Tool, describe_error

MAX_NAME_CHARS = 100
MAX_SUMMARY_CHARS = 200

DENY = Fallback()
"""Default fallback of an agent."""

DenialPolicy = Literal["continue", "degrade", "fail"]
Interaction = Literal["desk", "headless"]

_APPROVAL_FALLBACKS = (FallbackAction.DENY, FallbackAction.APPROVE, FallbackAction.FAIL)
_INPUT_FALLBACKS = (FallbackAction.DENY, FallbackAction.VALUE, FallbackAction.FAIL)


@dataclass(frozen=True)
class Budgets:
    """Limits of a run; a run that reaches one ends as degraded. Time waiting for a person does not count."""

    max_steps: int = 20
    max_tool_calls: int = 200
    max_wall_time_s: float = 300
    max_transcript_bytes: int = 2 * 1024 * 1024


class AgentManifest(Immutable):
    """Description of an agent for the service, without code: name and tools make the digest, `context` is trusted."""

    name: str
    description: str
    approval_denial_policy: DenialPolicy
    tools: tuple[ToolDefinition, ...]
    digest: str
    origin: Origin = Origin()
    context: JsonObject = Field(default_factory=dict)


@dataclass(frozen=True)
class Agent:
    """An agent as its developer declares it; raises `InvalidInput` for a faulty declaration.

    `approval_timeout_s` applies to items whose rule has no `timeout_s`. A headless agent's fallbacks decide at once;
    `approve` needs a rule with `unattended_approval`. Rules read `context`, and what a run itself claims as `claimed`.
    """

    name: str
    instructions: str
    tools: tuple[Tool, ...]
    model: Model
    description: str = ""
    approval_denial_policy: DenialPolicy = "continue"
    approval_timeout_s: int | None = None
    interaction: Interaction = "desk"
    approval_fallback: Fallback = DENY
    input_fallback: Fallback = DENY
    budgets: Budgets = Budgets()
    context: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in _find_faults(self):
            raise InvalidInput(f"The agent {self.name!r} cannot work: {fault}")

    @cached_property
    def tools_by_name(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    def manifest(self) -> AgentManifest:
        definitions = tuple(tool.definition for tool in self.tools)
        first_line = self.instructions.strip().partition("\n")[0]
        return AgentManifest(
            name=self.name,
            description=self.description or first_line[:MAX_SUMMARY_CHARS],
            approval_denial_policy=self.approval_denial_policy,
            tools=definitions,
            digest=digest_json([self.name, [definition.digest for definition in definitions]]),
            context=self.context,
        )


def load_agents(paths: Sequence[str]) -> dict[str, Agent]:
    """Import agents by paths such as `demo.agents:support`; raises `InvalidInput` with the path that fails."""
    agents: dict[str, Agent] = {}
    for path in paths:
        module_name, _, attribute = path.partition(":")
        if not module_name or not attribute:
            raise InvalidInput(f"{path!r} is not a path to an agent. Write it as package.module:attribute.")
        try:
            module = importlib.import_module(module_name)
        except Exception as error:
            raise InvalidInput(f"{path}: {module_name} cannot be imported. {describe_error(error)}") from error
        agent = getattr(module, attribute, None)
        if agent is None:
            raise InvalidInput(f"{path}: the module {module_name} has no {attribute!r}. Correct the path.")
        if not isinstance(agent, Agent):
            raise InvalidInput(f"{path} is a {type(agent).__name__}, not an Agent. Name the agent itself.")
        if agent.name in agents:
            raise InvalidInput(f"{path} is a second agent named {agent.name!r}. Rename one of them.")
        agents[agent.name] = agent
    return agents


def _find_faults(agent: Agent) -> list[str]:
    names = [tool.name for tool in agent.tools]
    repeated = sorted({name for name in names if names.count(name) > 1})
    checks = {
        f"its name needs 1 to {MAX_NAME_CHARS} characters.": not 0 < len(agent.name) <= MAX_NAME_CHARS,
        f"two of its tools are named {', '.join(repeated)}; rename one of each.": repeated,
        "its approval_denial_policy is none of continue, degrade, fail.": (
            agent.approval_denial_policy not in get_args(DenialPolicy)
        ),
        "its interaction is neither desk nor headless.": agent.interaction not in get_args(Interaction),
        f"its approval_timeout_s is not between 0 and {LONGEST_WAIT_S}.": not (
            agent.approval_timeout_s is None or 0 <= agent.approval_timeout_s <= LONGEST_WAIT_S
        ),
        "its approval_fallback must deny, approve or fail.": agent.approval_fallback.action not in _APPROVAL_FALLBACKS,
        "its input_fallback must deny, give a value or fail.": agent.input_fallback.action not in _INPUT_FALLBACKS,
    }
    faults = [fault for fault, is_present in checks.items() if is_present]
    faults += [fault for name in names if (fault := find_name_fault(name)) is not None]
    try:
        check_json(agent.context)
    except SaysoError as error:
        faults.append(f"its context is not plain JSON. {error.message}")
    return faults
