"""Refuses tools that a framework starts inside a gated run although no gate has judged them.

An agent that a tool builds, imports or is handed cannot be found before the tool runs. So a module per framework guards
the place where the framework executes tools: within a gated run, a tool starts there only if a gate has seen it. The
run is known from a context variable, which threads started inside the run inherit.
"""
