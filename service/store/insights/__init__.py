"""Counters of what was asked and decided, by hour and day, and the queue of facts that they are counted from."""
