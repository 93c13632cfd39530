"""Agents whose models report the tokens of each call, one module for each framework."""
