"""Turns stop signals into one `KeyboardInterrupt`, and a second Ctrl-C into an immediate stop; waits for conditions."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from sayso.core.clock import monotonic_ms

SAME_PRESS_MS = 300
"""`make` forwards a signal that its child already got. A signal this soon is the same key press."""


class StopSignals:
    """The state of a stop: not requested, requested, or immediate."""

    def __init__(self) -> None:
        self.is_immediate = False
        self._stopping_since_ms: float | None = None

    def start_stopping(self) -> None:
        """Mark the stop as begun. From now on, only an immediate stop can be requested."""
        if self._stopping_since_ms is None:
            self._stopping_since_ms = float("-inf")

    def receive(self, signum: int, _frame: FrameType | None) -> None:
        now_ms = monotonic_ms()
        if self._stopping_since_ms is None:
            self._stopping_since_ms = now_ms
            raise KeyboardInterrupt
        if signum == signal.SIGINT and now_ms - self._stopping_since_ms > SAME_PRESS_MS:
            self.is_immediate = True


@contextmanager
def catch_stop_signals() -> Iterator[StopSignals]:
    """Catch Ctrl-C, SIGTERM and SIGHUP within the block. SIGHUP stays ignored under `nohup`.

    After the block they are ignored, so that another Ctrl-C cannot turn a clean end into a crash.
    """
    stop = StopSignals()
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    for name in signals:
        signal.signal(name, stop.receive)
    try:
        yield stop
    finally:
        for name in signals:
            signal.signal(name, signal.SIG_IGN)


POLL_S = 0.05


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Return True once the condition holds, or False after the timeout."""
    deadline_ms = monotonic_ms() + timeout_s * 1000
    while not condition():
        if monotonic_ms() >= deadline_ms:
            return False
        time.sleep(POLL_S)
    return True
