"""Tokens of an OpenAI Agents run."""

from typing import Any

from agents import Agent, ModelResponse, RunConfig, RunContextWrapper, RunHooks
from agents.models import get_default_model

from sayso.adapters.usage import UsageMeter
from sayso.canonical_json import JsonObject
from sayso.records.suspensions import ModelUsage

Total = tuple[int, int, int]
"""Input tokens, output tokens and model calls."""

NOTHING: Total = (0, 0, 0)


class UsageHooks(RunHooks[Any]):
    """Notes the tokens of each response under the name of its model."""

    def __init__(self, run_config: RunConfig | None) -> None:
        self._model = run_config.model if run_config is not None else None
        self._meter = UsageMeter()

    async def on_llm_end(self, _context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Note one response. Its usage counts the attempts that failed before it."""
        used = response.usage
        self._meter.note(self._name_model(agent), used.input_tokens, used.output_tokens, max(1, used.requests))

    def read(self, native: JsonObject, before: Total) -> tuple[ModelUsage, ...] | None:
        """Return the usage since the run had the total `before`. Agents inside of tools count without a name."""
        after = read_total(native)
        self._meter.note_total(after[0] - before[0], after[1] - before[1], after[2] - before[2])
        return self._meter.read()

    def _name_model(self, agent: Agent[Any]) -> Any:
        """Return the model's name, or anything but a text if it has none."""
        model = self._model or agent.model or get_default_model()
        return model if isinstance(model, str) else getattr(model, "model", None)


def read_total(native: JsonObject) -> Total:
    """Return what a saved run has used so far."""
    context: Any = native["context"]
    used = context["usage"]
    return used["input_tokens"], used["output_tokens"], used["requests"]
