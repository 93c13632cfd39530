"""List the frameworks whose runs are suspended and resumed: one row each, with what it cannot do and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from service.settings import CHECKOUT

ENVIRONMENTS = CHECKOUT / ".venv" / ".frameworks"


@dataclass(frozen=True)
class Kind:
    """A framework in one of its modes: where its packages are, which module has its bot, and what is left out."""

    name: str
    title: str
    environment: str
    skips: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return ENVIRONMENTS / self.environment / "bin" / "python"

    @property
    def module(self) -> str:
        """The module whose `bot` plays the scenarios."""
        return f"tests.frameworks.bots.{self.name}"


KINDS = (
    Kind("pydantic_ai", "Pydantic AI", "pydantic_ai"),
    Kind("openai_agents", "OpenAI Agents", "openai_agents"),
)
"""The rows of the support table."""

SCENARIOS = {
    "approve": "approve",
    "edit": "edit",
    "deny": "deny with message",
    "value": "value",
    "timeout": "timeout with fallback",
    "batch": "batch of three, mixed decisions",
    "twice": "two suspensions in a row",
    "crash": "crash in the middle",
    "race": "resumed twice at once",
    "changed": "changed tool definition",
    "large": "1 MiB of state",
    "tampered": "tampered state",
    "worker": "begun by a worker",
}
"""The columns of the support table, by the name of their tests."""
