"""Tests of what Sayso is installed with, each by the tools that read it."""
