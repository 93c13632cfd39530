"""Commands of the life cycle of rules."""
