"""Runs of trpc-agent-go behind the desk: a Go server with the real module, and the program that resumes them."""
