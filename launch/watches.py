"""Health checks of programs that can hang without ending."""

from collections.abc import Callable, Iterable

from launch.checks import is_clock_ticking, is_healthy
from launch.programs import CLOCK, SERVICE, Program
from service.core.settings import Settings

CHECK_EVERY_S = 5.0
"""Seconds between two checks of a program."""

SERVICE_MISSES = 3
CLOCK_MISSES = 12
"""One minute: deadlines hold without a clock, and the store may be unreachable for a while."""

START_MISSES = 24
"""The limit until the first successful check."""


class Watch:
    """Counts consecutive failed checks of a program."""

    def __init__(self, works: Callable[[], bool], misses: int) -> None:
        self._works = works
        self._misses = misses
        self.begin()

    def begin(self) -> None:
        """Reset the count after a start of the program."""
        self._allowed = START_MISSES
        self._missed = 0

    def check(self) -> bool:
        """Check once. Return False if the program must be restarted."""
        if self._works():
            self._missed, self._allowed = 0, self._misses
            return True
        self._missed += 1
        if self._missed < self._allowed:
            return True
        self.begin()
        return False


def watches_for(settings: Settings, programs: Iterable[Program]) -> dict[str, Watch]:
    """Return a watch for each program that has a check, by name."""
    known = {
        SERVICE.name: Watch(lambda: is_healthy(settings.host, settings.port), SERVICE_MISSES),
        CLOCK.name: Watch(lambda: is_clock_ticking(settings.store_url), CLOCK_MISSES),
    }
    names = {program.name for program in programs}
    return {name: watch for name, watch in known.items() if name in names}
