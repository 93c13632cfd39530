"""How much memory and disk a desk needs, from what runs measured: `make bench ARGS=--archive` compares them."""

from typing import NamedTuple

INDEXED = 6
"""Bytes of memory that an archived run leaves in the index of segments."""

_BASE = 32 * 1024 * 1024  # an empty desk with its rules, people and counters
_HEADROOM = 1.5  # for buffers of clients and pages that a rewrite of the file copies
_HOURS_A_DAY = 24
_REWRITTEN_AT = 2  # the file grows to twice its size before it is rewritten, and both lie on the disk then
_APPENDED = 2.75  # what a run appends to the file before it is rewritten, by its memory


class Shape(NamedTuple):
    """What a run holds: its calls, the JSON of each one's arguments in bytes, and the decisions that each needs."""

    calls: int = 1
    call_bytes: int = 300
    decisions: int = 1


ONE_CALL = Shape()


class RunSize(NamedTuple):
    """Bytes of an ended run with its record, trail and indexes: in memory, appended to the file, and archived."""

    memory: float
    appended: float
    archived: float


class Size(NamedTuple):
    """What a desk needs in bytes: memory of its data, the store's limit, the store's file, and the archive."""

    memory: int
    limit: int
    file: int
    archive: int


def estimate_run(shape: Shape) -> RunSize:
    """Return what a run of this shape needs. A decision keeps the arguments that it was about."""
    calls, size, decisions = shape
    memory = 3_000 + calls * (790 + 1.45 * size + decisions * (1_190 + 1.04 * size))
    archived = 340 + calls * (90 + 0.38 * size + decisions * (80 + 0.03 * size))
    return RunSize(memory, _APPENDED * memory, archived)


def estimate_size(runs_per_hour: int, hot_days: int, kept_days: int, shape: Shape = ONE_CALL) -> Size:
    """Return what a desk needs with so many runs an hour, in memory for `hot_days`, and kept for `kept_days`."""
    run = estimate_run(shape)
    hot, kept = (runs_per_hour * _HOURS_A_DAY * days for days in (hot_days, kept_days))
    archived = max(0, kept - hot)
    memory = round(_BASE + hot * run.memory + archived * INDEXED)
    file = round(memory * (1 + _REWRITTEN_AT) + runs_per_hour * run.appended)
    return Size(memory, round(memory * _HEADROOM), file, round(archived * run.archived))
