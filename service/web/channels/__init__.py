"""Pages about channels."""
