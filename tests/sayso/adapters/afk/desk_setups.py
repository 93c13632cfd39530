"""Scenes with AFK agents that use a desk in their own process."""

from dataclasses import dataclass, field
from typing import Any

from sayso.adapters.afk.desk import Desk
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action, PolicyRule
from sayso.testing import InProcessDesk
from tests.frameworks.contracts import (
    Agent,
    Runner,
    RunnerConfig,
)
from tests.frameworks.contracts.scripted import MemoryRows, PayTool, ScriptedModel

RULES: tuple[dict[str, Any], ...] = (
    {"rule_id": "small", "condition": {"when": "args.amount < 5"}, "action": "allow", "reason": "Small sums are fine"},
    {"rule_id": "never", "condition": {"when": 'args.to == "eve"'}, "action": "deny", "reason": "Eve is paid nothing"},
    {
        "rule_id": "how-much",
        "condition": {"when": 'args.to == "ask"'},
        "action": "request_user_input",
        "reason": "The sum is not known",
        "request_payload": {"prompt": "How much?", "target_arg": "amount"},
    },
)


@dataclass
class DeskSetup:
    """An agent with a desk, and its effects."""

    turns: tuple[Any, ...]
    office: InProcessDesk
    options: dict[str, Any] = field(default_factory=dict)
    agent_options: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    memory: MemoryRows = field(default_factory=MemoryRows)
    pay_tool: PayTool = field(default_factory=PayTool)
    model: ScriptedModel = field(init=False)
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(*self.turns)

    def open(self, desk_type: type[Desk] = Desk, client: Any = None) -> tuple[Runner, Agent]:
        """Return the runner and the agent of a new process."""
        self.desk = desk_type(client or self.office.async_client(), **self.options)
        agent = Agent(
            model=self.model,
            instructions="Pay.",
            tools=self.desk.gate([self.pay_tool.tool]),
            policy_roles=[self.desk.role],
            **self.agent_options,
        )
        config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False, **self.config)
        return Runner(memory_store=self.memory, interaction_provider=self.desk.provider, config=config), agent

    async def play(self) -> Any:
        """Run to the end."""
        runner, agent = self.open()
        return await runner.run(agent, user_message="Pay them.", thread_id="thread")

    @property
    def ended(self) -> list[Any]:
        """Return the status of each run."""
        return [(one.end and one.end.status.value) for one in self.office.records.values()]


def office() -> InProcessDesk:
    rules = tuple(PolicyRule.model_validate(one) for one in RULES)
    return InProcessDesk(policy=Policy(rules=rules, default=Action.REQUEST_APPROVAL))
