"""Mandates: proposing a plan, which calls an approved one covers, and what they spend of it."""
