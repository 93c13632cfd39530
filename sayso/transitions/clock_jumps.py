"""Tell that the store's clock jumped: it went on by more than the time that has passed.

Plain functions on readings. Uptimes of one machine since one boot are the measure. Where there is none (the last beat
was another machine's, or from before a restart), hours without a beat are believed as far as this machine's own wall
clock agrees with the store's.
"""

from sayso.clock import iso_utc
from sayso.records.base import Immutable

JUMP_MS = 300_000
"""From how much on a step of the store's clock is a jump."""


class Beat(Immutable):
    """One beat of a clock: the store's time, beside the uptime and the wall clock of the machine that read it."""

    at_ms: int
    uptime_ms: int
    boot: str
    wall_ms: int


def find_drift_ms(last: Beat, now: Beat) -> int:
    """Return by how much the store's clock went on too far between two beats; less than 0 where it went back."""
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
