"""Waiting for a condition."""

import time
from collections.abc import Callable

from sayso.core.clock import monotonic_ms

POLL_S = 0.05


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Return True once the condition holds, or False after the timeout."""
    deadline_ms = monotonic_ms() + timeout_s * 1000
    while not condition():
        if monotonic_ms() >= deadline_ms:
            return False
        time.sleep(POLL_S)
    return True
