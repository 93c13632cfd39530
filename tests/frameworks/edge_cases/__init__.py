"""Agents for rare cases, each in its framework's environment and without a server."""
