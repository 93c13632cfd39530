"""One file a way in which a run goes on, and the table that leads to it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from sayso.agents import Agent
from sayso.policies import Policy
from sayso.rechecks import Standing, recheck
from sayso.resumptions import Fence
from sayso.suspensions import Intent, SuspensionRecord
from service.store.suspensions import Saved
from service.wiring import Wiring
from workers.resumers import calls, frameworks, runner

Resumer = Callable[[Wiring, Mapping[str, Agent], Saved, Fence], Awaitable[None]]

FRAMEWORKS = ("afk", "autogen", "langgraph", "openai_agents", "parsimony", "pydantic_ai")
"""Frameworks whose agents a worker drives; what differs between them is in `sayso/adapters/`, a file each."""

RESUMERS: Mapping[str, Resumer] = {
    "runner": runner.resume,
    "calls": calls.resume,
    **dict.fromkeys(FRAMEWORKS, frameworks.resume),
}
"""`resume.resumer` of a suspension -> what drives it."""


@dataclass(frozen=True)
class Known:
    """What a worker knows before it takes a run up: the agents it has, the rules, and whom to trust no longer."""

    agents: Mapping[str, Agent]
    policy: Policy
    standing: Standing


def plan_first(known: Known, record: SuspensionRecord, fence: Fence, now_ms: int) -> tuple[Intent, ...]:
    """Return the calls that a worker will start before it does anything else, as far as the record alone tells."""
    agent = known.agents.get(record.run.agent)
    if agent is None or record.resume.resumer != "calls":
        return ()
    checked = recheck(record, agent, known.policy, known.standing)
    return calls.plan_first(agent, checked, record, fence, now_ms)
