"""Open items by their facets, for filters and counts."""
