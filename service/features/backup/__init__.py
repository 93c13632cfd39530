"""Backups of a live store, and their restore into an empty one."""
