"""The counters of rules that remember calls."""
