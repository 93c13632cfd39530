"""Replays of rules, and the life cycle of the rulebook."""
