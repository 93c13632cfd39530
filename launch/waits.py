"""Wait for a condition and no longer than needed."""

import time
from collections.abc import Callable

from sayso.clock import monotonic_ms

PAUSE_S = 0.05


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Return True as soon as the condition holds, False when it did not within the time."""
    deadline_ms = monotonic_ms() + timeout_s * 1000
    while not condition():
        if monotonic_ms() >= deadline_ms:
            return False
        time.sleep(PAUSE_S)
    return True
