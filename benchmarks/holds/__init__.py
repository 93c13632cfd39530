"""Measure how long slow inputs hold the service's event loop: `make bench ARGS=--holds`."""
