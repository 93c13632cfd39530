"""AFK agents behind `Framework`, as a worker drives them."""

import json
from dataclasses import dataclass, field
from typing import Any

from sayso.adapters.afk import Afk
from sayso.adapters.afk.hooks import Hooks
from sayso.core.policy.rules import Action
from sayso.core.records.tools import ToolCall as OurCall
from sayso.core.records.tools import ToolResult as OurResult
from sayso.runner.batches import Batch, BatchCall, end_call
from sayso.runner.execution import CallExecutor, use_executor
from sayso.runner.protocol import Done, FrameworkTurn
from sayso.runner.tools import CallContext
from tests.frameworks.contracts import (
    Agent,
    Runner,
    RunnerConfig,
)
from tests.frameworks.contracts.scripted import MemoryRows, PayTool, ScriptedModel
from tests.sayso.runner.test_execution import Kept


@dataclass
class AgentSetup:
    """An AFK agent behind `Framework`, and its effects."""

    turns: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    tools: list[Any] = field(default_factory=list)
    memory: MemoryRows = field(default_factory=MemoryRows)
    pay_tool: PayTool = field(default_factory=PayTool)
    hooks: list[Hooks] = field(default_factory=list)

    @property
    def framework(self) -> Afk:
        """The agent of a worker."""
        return Afk(self.build, lambda: self.memory)

    def build(self, hooks: Hooks) -> tuple[Any, Any]:
        """Return the runner and the agent."""
        self.hooks.append(hooks)
        tools = hooks.gate([*(self.tools or [self.pay_tool.tool])])
        given = {"instructions": "Pay.", "tools": tools, "policy_roles": [hooks.role], **self.options}
        agent = Agent(model=ScriptedModel(*self.turns), **given)
        config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
        return Runner(memory_store=hooks.memory, interaction_provider=hooks.provider, config=config), agent

    async def begin(self) -> FrameworkTurn:
        """Run to the first calls."""
        reached = await self.framework.begin("Pay them.")
        assert isinstance(reached, FrameworkTurn)
        return reached


def decide(turn: FrameworkTurn, *decisions: Any, kept: Kept | None = None) -> CallExecutor:
    """Return an executor. Per call: True to run, arguments to edit, a text to deny, or a result."""
    calls, contexts = [], {}
    for index, (requested, decision) in enumerate(zip(turn.calls, decisions, strict=True)):
        args = decision if isinstance(decision, dict) else json.loads(requested.args_json)
        call = BatchCall(
            call=OurCall(call_id=requested.call_id, index=index, name=requested.name, args=args),
            action=Action.ALLOW,
            reason="",
        )
        if isinstance(decision, str):
            call = end_call(call, decision)
        elif isinstance(decision, OurResult):
            call = call.model_copy(update={"result": decision})
        else:
            contexts[index] = CallContext("run", requested.call_id, f"key{index}")
        calls.append(call)
    return CallExecutor(Batch(calls=tuple(calls), started_step=1), contexts, (kept or Kept()).keep)


async def resume(setup: AgentSetup, asked: FrameworkTurn, gate: CallExecutor) -> FrameworkTurn | Done:
    """Resume like a worker."""
    with use_executor(gate):
        return await setup.framework.resume(asked.native, gate)


def read_text(reached: FrameworkTurn | Done) -> str:
    assert isinstance(reached, Done)
    assert isinstance(reached.result, dict)
    return str(reached.result["text"])
