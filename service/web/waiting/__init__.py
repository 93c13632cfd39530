"""Open items as pages list, count and follow them."""
