"""Sentences about replays of rules, and about what changes between two rulebooks."""
