"""Tokens of an AutoGen run, from the messages of its members."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import StructuredMessage, TextMessage, ToolCallRequestEvent

from sayso.adapters.usage import UsageMeter
from sayso.records.suspensions import ModelUsage

_RESPONSES = (ToolCallRequestEvent, TextMessage, StructuredMessage)
"""The messages that hold a response of a model. The others follow from one of these."""


def read_usage(messages: Sequence[Any], assistants: Collection[AssistantAgent]) -> tuple[ModelUsage, ...] | None:
    """Return the usage by model, or None if a response of an assistant has none."""
    meter, models = UsageMeter(), {assistant.name: _name_model(assistant._model_client) for assistant in assistants}
    for message in messages:
        if isinstance(message, _RESPONSES) and message.source in models:
            used = message.models_usage
            given, made = (used.prompt_tokens, used.completion_tokens) if used is not None else (None, None)
            meter.note(models[message.source], given, made)
    return meter.read()


def _name_model(client: Any) -> Any:
    """Return the name of the client's model; clients have no public name for it."""
    args = getattr(client, "_create_args", None)
    return args.get("model") if isinstance(args, Mapping) else None
