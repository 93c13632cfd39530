"""Hooks of coding agents: what they ask before a tool runs, and the answer in their own format."""

from importlib.resources import files


def rules_text() -> str:
    """Return rules for coding agents, to begin with."""
    return (files(__name__) / "rules.yaml").read_text(encoding="utf-8")
