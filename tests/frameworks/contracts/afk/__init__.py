"""A small program that behaves towards Sayso's adapter as AFK's runner is described to.

AFK is on no package index. Where its own checkout is on the path that one is imported, and this is not looked at.
"""

STANDS_IN = True
"""What tells it from AFK itself."""
