"""Replays of rules and the versions of the rulebook."""
