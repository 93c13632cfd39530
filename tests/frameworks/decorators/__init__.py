"""Gated functions below the decorators of frameworks, one module each, run in its environment."""
