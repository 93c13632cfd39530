"""How much memory and disk a desk needs, from what runs measured: `make bench ARGS=--archive` compares them."""

from typing import NamedTuple

HOT = 5_800
"""Bytes of memory of an ended run with one call of 300 bytes, its record, trail and indexes."""

INDEXED = 6
"""Bytes of memory that an archived run leaves in the index of segments."""

APPENDED = 14_500
"""Bytes that a run appends to the store's file before it is rewritten."""

ARCHIVED = 500
"""Bytes of an archived run in its segment."""

_BASE = 32 * 1024 * 1024  # an empty desk with its rules, people and counters
_HEADROOM = 1.5  # for buffers of clients and pages that a rewrite of the file copies
_HOURS_A_DAY = 24
_REWRITTEN_AT = 2  # the file grows to twice its size before it is rewritten, and both lie on the disk then


class Size(NamedTuple):
    """What a desk needs in bytes: memory of its data, the store's limit, the store's file, and the archive."""

    memory: int
    limit: int
    file: int
    archive: int


def estimate_size(runs_per_hour: int, hot_days: int, kept_days: int, call_bytes: int = 300) -> Size:
    """Return what a desk needs with so many runs an hour, in memory for `hot_days`, and kept for `kept_days`."""
    extra = max(0, call_bytes - 300)
    hot, kept = (runs_per_hour * _HOURS_A_DAY * days for days in (hot_days, kept_days))
    archived = max(0, kept - hot)
    memory = _BASE + hot * (HOT + 2 * extra) + archived * INDEXED
    file = memory * (1 + _REWRITTEN_AT) + runs_per_hour * (APPENDED + 6 * extra)
    return Size(memory, round(memory * _HEADROOM), file, archived * (ARCHIVED + extra))
