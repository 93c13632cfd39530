"""Sentences that reviewers read, shared by pages, channels and the command line."""
