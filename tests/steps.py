"""Counting of work, for tests that bound it without a clock."""

import sys
from collections.abc import Callable


def count_steps(act: Callable[[], object]) -> int:
    """Return how many Python functions begin, and how many generators go on, while `act` runs."""
    steps = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return steps
