"""Frozen models for what rules remember about calls."""
