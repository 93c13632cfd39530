"""Timelines of external events: one reader per source format, and their merge with the audit trail."""
