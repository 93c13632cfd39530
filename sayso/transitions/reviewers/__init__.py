"""Transitions of reviewers beside their decisions."""
