"""Agents that a gated tool gets only when it runs, one module per framework, run in its environment."""
