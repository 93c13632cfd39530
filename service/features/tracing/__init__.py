"""Spans of calls in the trace of their agent, for a collector of OpenTelemetry. They never delay or fail a request."""
