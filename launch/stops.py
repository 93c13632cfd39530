"""Turn the signals that ask us to stop into one `KeyboardInterrupt`, and a later Ctrl-C into haste."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from sayso.clock import monotonic_ms

SAME_PRESS_MS = 300
"""`make` passes a signal on that its child got already; what comes this soon after is the same request."""


class Stops:
    """What we were asked so far: nothing, to stop, or to stop at once."""

    def __init__(self) -> None:
        self.in_haste = False
        self._asked_at_ms: float | None = None

    def begin(self) -> None:
        """From now on we are stopping, asked or not; only haste can still be asked."""
        if self._asked_at_ms is None:
            self._asked_at_ms = float("-inf")

    def hear(self, signum: int, _frame: FrameType | None) -> None:
        """Take one signal."""
        now_ms = monotonic_ms()
        if self._asked_at_ms is None:
            self._asked_at_ms = now_ms
            raise KeyboardInterrupt
        if signum == signal.SIGINT and now_ms - self._asked_at_ms > SAME_PRESS_MS:
            self.in_haste = True


@contextmanager
def heard_stops() -> Iterator[Stops]:
    """Listen for Ctrl-C, SIGTERM and the terminal's end within the block; a `nohup` is respected.

    After the block they are ignored: all is down, and a third Ctrl-C shall not turn a clean end into a crash.
    """
    stops = Stops()
    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.append(signal.SIGHUP)
    for name in heard:
        signal.signal(name, stops.hear)
    try:
        yield stops
    finally:
        for name in heard:
            signal.signal(name, signal.SIG_IGN)
