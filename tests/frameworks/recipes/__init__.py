"""Recipes of the documentation for programs that have no adapter."""
