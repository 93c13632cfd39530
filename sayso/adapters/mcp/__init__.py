"""Proxy for MCP servers: tool calls run once, with the approved arguments, only if approved; the rest passes through.

A held call is a task if the client names that extension, `input_required` if it speaks 2026-07-28, or else waits.
"""
