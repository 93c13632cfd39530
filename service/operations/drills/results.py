"""Whether a reviewer approves without looking, by a sequential test of drills (Wald's SPRT)."""

from collections.abc import Sequence
from math import log

CAREFUL = 0.1
"""The share of false calls that a careful reviewer approves."""

CARELESS = 0.6
"""The share that a careless one approves at least."""

_FALSE_ALARM = 0.005
_MISS = 0.05
_FLAG = log((1 - _MISS) / _FALSE_ALARM)
_CLEAR = log(_MISS / (1 - _FALSE_ALARM))
_APPROVED = log(CARELESS / CAREFUL)
_DENIED = log((1 - CARELESS) / (1 - CAREFUL))


def is_flagged(approved: Sequence[bool]) -> bool:
    """Return whether the last test that ended found a careless reviewer; after its end, the next test begins.

    `approved` says of each drill whether its false call was approved, the oldest first.
    """
    flagged, evidence = False, 0.0
    for missed in approved:
        evidence += _APPROVED if missed else _DENIED
        if evidence >= _FLAG or evidence <= _CLEAR:
            flagged, evidence = evidence > 0, 0.0
    return flagged
