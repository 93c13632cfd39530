"""Parts of agents of parsimony-agents for tests: scripted models behind LiteLLM, and tools."""

from typing import Any

import litellm
from litellm.llms.custom_llm import CustomLLM
from parsimony_agents.tools import Tool


def add_model(provider: str, model: CustomLLM) -> None:
    """Let `provider/…` name this model."""
    litellm.suppress_debug_info = True
    litellm.custom_provider_map += [{"provider": provider, "custom_handler": model}]
    litellm.utils.custom_llm_setup()


def make_chunk(**given: Any) -> Any:
    """Return a part of a model's response."""
    return {"text": "", "is_finished": False, "finish_reason": "", "index": 0, "tool_use": None, "usage": None, **given}


def read_text(message: Any) -> str:
    """Return the text of a message."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(one["text"] for one in content or ())


def make_tool(function: Any, description: str, properties: Any) -> Tool:
    """Return a tool that requires all of these arguments."""
    required = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(function, function.__name__, description, required, "system")
