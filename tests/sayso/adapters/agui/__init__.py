"""The AG-UI proxy without an agent."""
