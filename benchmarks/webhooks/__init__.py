"""Delivery of events to many endpoints, some of which misbehave."""
