"""Routes of the life cycle of rules."""
