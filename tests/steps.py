"""Counting of work, for tests that bound it without a clock."""

import gc
import sys
from collections.abc import Callable
from types import FrameType

from sayso.core.clock import monotonic_ms


def count_steps(act: Callable[[], object]) -> int:
    """Return how many Python functions begin, and how many generators go on, while `act` runs.

    What the collector of garbage calls is not counted, nor is the clock: work takes breaks by its time.
    """
    steps = 0

    def count(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal steps
        steps += event == "call" and frame.f_code is not monotonic_ms.__code__

    gc.collect()
    gc.disable()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return steps
