"""The runner: starts runs, resumes saved ones and resolves background tools."""

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

from afk.agents import Agent
from afk.agents.errors import (
    AgentCheckpointCorruptionError,
)
from afk.agents.types import (
    AgentResult,
)
from afk.core.interaction import HeadlessInteractionProvider
from afk.core.runs import Run, RunHandle
from afk.llms.types import Message


@dataclass(frozen=True)
class RunnerConfig:
    """The settings of a runner."""

    interaction_mode: str = "headless"
    approval_timeout_s: float = 300.0
    input_timeout_s: float = 300.0
    approval_fallback: str = "deny"
    input_fallback: str = "deny"
    checkpoint_async_writes: bool = True


class Runner:
    """Starts runs of agents and resumes saved ones."""

    def __init__(
        self,
        *,
        memory_store: Any,
        interaction_provider: Any = None,
        policy_engine: Any = None,
        config: RunnerConfig | None = None,
    ) -> None:
        self.config = config or RunnerConfig()
        self.memory = memory_store
        self.interaction = interaction_provider or HeadlessInteractionProvider()
        self.policy_engine = policy_engine

    async def run_handle(
        self, agent: Agent, *, user_message: str | None = None, thread_id: str | None = None, **_more: Any
    ) -> RunHandle:
        """Start a run."""
        run = Run(self, agent, f"run_{uuid.uuid4().hex}", thread_id or f"thread_{uuid.uuid4().hex}")
        if agent.instructions:
            run.messages.append(Message("system", agent.instructions))
        run.messages.append(Message("user", user_message or ""))
        return self._start(run, resumed=False)

    async def resume_handle(self, agent: Agent, *, run_id: str, thread_id: str) -> RunHandle:
        """Resume a saved run; one that has ended returns its result."""
        await self.memory.setup()
        latest = await self.memory.get_state(thread_id, f"checkpoint:{run_id}:latest")
        if not isinstance(latest, dict):
            raise AgentCheckpointCorruptionError(f"No checkpoint found for run_id={run_id} thread_id={thread_id}")
        if latest["phase"] == "run_terminal":
            handle = RunHandle()
            handle._result.set_result(AgentResult(**latest["payload"]["terminal_result"]))
            return handle
        for step in range(latest["step"], -1, -1):
            saved = await self.memory.get_state(thread_id, f"checkpoint:{run_id}:{step}:runtime_state")
            if isinstance(saved, dict):
                run = Run(self, agent, run_id, thread_id)
                run.restore(saved["payload"])
                return self._start(run, resumed=True)
        raise AgentCheckpointCorruptionError(f"No runtime_state checkpoint found for run_id={run_id}")

    async def run(self, agent: Agent, **given: Any) -> AgentResult:
        """Run to the end."""
        return await (await self.run_handle(agent, **given)).await_result()

    async def resume(self, agent: Agent, *, run_id: str, thread_id: str) -> AgentResult:
        """Resume and run to the end."""
        return await (await self.resume_handle(agent, run_id=run_id, thread_id=thread_id)).await_result()

    async def list_background_tools(
        self, *, thread_id: str, run_id: str, include_resolved: bool = False
    ) -> list[dict[str, Any]]:
        """Return the run's tickets."""
        await self.memory.setup()
        rows = await self.memory.list_state(thread_id, prefix=f"bgtool:{run_id}:")
        return [row for row in rows.values() if include_resolved or row["status"] in ("pending", "running")]

    async def resolve_background_tool(
        self, *, thread_id: str, run_id: str, ticket_id: str, output: Any, tool_name: str | None = None
    ) -> None:
        """Save the output of a ticket."""
        await self._end_ticket(thread_id, run_id, ticket_id, {"status": "completed", "output": output})

    async def fail_background_tool(
        self, *, thread_id: str, run_id: str, ticket_id: str, error: str, tool_name: str | None = None
    ) -> None:
        """Save the error of a ticket."""
        await self._end_ticket(thread_id, run_id, ticket_id, {"status": "failed", "error": error})

    async def _end_ticket(self, thread_id: str, run_id: str, ticket_id: str, how: dict[str, Any]) -> None:
        await self.memory.setup()
        key = f"bgtool:{run_id}:{ticket_id}:state"
        await self.memory.put_state(thread_id, key, {**await self.memory.get_state(thread_id, key), **how})

    def _start(self, run: Run, resumed: bool) -> RunHandle:
        handle = RunHandle()
        handle._task = asyncio.create_task(run.execute(handle, resumed))
        return handle
