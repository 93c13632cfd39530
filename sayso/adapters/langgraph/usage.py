"""Tokens of a LangGraph run, also of its inner graphs and of models inside of tools."""

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from sayso.adapters.usage import UsageMeter


class UsageCounter(BaseCallbackHandler):
    """Notes the tokens of each response under the name of its model."""

    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        self.meter = UsageMeter()

    def on_llm_end(self, response: LLMResult, **_more: Any) -> None:
        """Note one response."""
        message: Any = next((getattr(part, "message", None) for parts in response.generations for part in parts), None)
        usage = getattr(message, "usage_metadata", None) or {}
        about = getattr(message, "response_metadata", None) or {}
        model = about.get("model_name") or about.get("model")
        self.meter.note(model, usage.get("input_tokens"), usage.get("output_tokens"))
