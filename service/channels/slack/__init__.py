"""Slack: cards as Block Kit messages, decisions over HTTP or Socket Mode."""
