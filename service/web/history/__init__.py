"""Decided items: their page, the search, and exports."""
