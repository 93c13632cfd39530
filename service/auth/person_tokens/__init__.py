"""Signed tokens that say for which person an agent acts."""
