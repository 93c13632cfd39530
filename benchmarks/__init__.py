"""Measure Sayso beside two floors in one run: `make bench`."""
