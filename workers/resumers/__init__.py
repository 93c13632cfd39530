"""One file a way in which a run goes on, and the table that leads to it."""

from collections.abc import Awaitable, Callable, Mapping

from sayso.agents import Agent
from sayso.resumptions import Fence
from sayso.suspensions import Intent, SuspensionRecord
from service.store.suspensions import Saved
from service.wiring import Wiring
from workers.resumers import calls, runner

Resumer = Callable[[Wiring, Mapping[str, Agent], Saved, Fence], Awaitable[None]]

RESUMERS: Mapping[str, Resumer] = {"runner": runner.resume, "calls": calls.resume}
"""`resume.resumer` of a suspension -> what drives it."""


def plan_first(agents: Mapping[str, Agent], record: SuspensionRecord, fence: Fence, now_ms: int) -> tuple[Intent, ...]:
    """Return the calls that a worker will start before it does anything else, as far as the record alone tells."""
    agent = agents.get(record.run.agent)
    if agent is None or record.resume.resumer != "calls":
        return ()
    return calls.plan_first(agent, record, fence, now_ms)
