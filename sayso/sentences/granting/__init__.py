"""Sentences about standing grants."""
