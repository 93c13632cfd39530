"""Restraints of a rule that asks: calls that people have denied before, and how often it asks."""
