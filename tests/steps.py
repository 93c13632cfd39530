"""Counting of work, for tests that bound it without a clock."""

import gc
import sys
from collections.abc import Callable


def count_steps(act: Callable[[], object]) -> int:
    """Return how many Python functions begin, and how many generators go on, while `act` runs.

    What the collector of garbage calls is not counted.
    """
    steps = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal steps
        steps += event == "call"

    gc.collect()
    gc.disable()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return steps
