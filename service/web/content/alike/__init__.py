"""Alike items, which are shown as one table and decided together."""
