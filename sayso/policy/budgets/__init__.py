"""Budgets of work: what conditions may cost in an event loop, and what is evaluated where it can be killed."""
