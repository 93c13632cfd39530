"""Agents by the name of their framework, for tools that import one when they run."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return an agent that pays, made now."""
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"tests.frameworks.late_agents.{name}").make_payer()
