"""Channels under load: Slack while the store restarts, endpoints that misbehave, and providers that fail."""
