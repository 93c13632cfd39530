"""Hooks of coding agents: what they ask before a tool runs, and the answer in their own format."""
