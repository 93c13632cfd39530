"""Tests of hooks with the real Claude Code, whose model is scripted."""
