"""Measurements of Sayso and of two floors: `make bench`."""
