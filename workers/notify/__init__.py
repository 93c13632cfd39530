"""Delivery of cards over channels."""
