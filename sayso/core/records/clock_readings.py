"""Detection of jumps of the store's clock, by comparing two readings.

The uptime of one machine since one boot measures the real time between them. Without it, a gap is believed as far as
this machine's wall clock agrees with the store's clock.
"""

from sayso.core.clock import iso_utc
from sayso.core.records.base import Immutable

JUMP_MS = 300_000
"""The smallest step of the store's clock that counts as a jump."""


class ClockReading(Immutable):
    """A reading of the store's clock, with the uptime and wall clock of the machine that took it."""

    at_ms: int
    uptime_ms: int
    boot: str
    wall_ms: int


def find_drift_ms(last: ClockReading, now: ClockReading) -> int:
    """Return how far the store's clock ran ahead between two readings; negative when it went back."""
    passed_ms = now.at_ms - last.at_ms
    if now.boot and now.boot == last.boot:
        return passed_ms - (now.uptime_ms - last.uptime_ms)
    if passed_ms < 0:
        return passed_ms
    ahead_ms = now.at_ms - now.wall_ms
    return min(ahead_ms, passed_ms) if ahead_ms > JUMP_MS else 0


def describe_jump(from_ms: int, to_ms: int) -> str:
    """Say from where to where the store's clock jumped, to the second."""
    before, after = (f"{iso_utc(at_ms)[:19].replace('T', ' ')} UTC" for at_ms in (from_ms, to_ms))
    return f"The store's clock jumped from {before} to {after}"
