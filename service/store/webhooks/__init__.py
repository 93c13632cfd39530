"""Endpoints that receive events, senders of signed decisions, and announcements that wait to be fanned out."""
