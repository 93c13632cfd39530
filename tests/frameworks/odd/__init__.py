"""Agents that do what is seldom done, each in its framework's environment and without a server."""
