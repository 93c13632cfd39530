"""Checks that a program still works, for those that can hang or be stopped without ending."""

from collections.abc import Callable, Iterable

from launch.checks import clock_beats, is_healthy
from launch.programs import CLOCK, SERVICE, Program
from service.settings import Settings

EVERY_S = 5.0
"""How often a program is checked."""

SERVICE_MISSES = 3
CLOCK_MISSES = 12
"""Deadlines hold without a clock, and the store may be away for a while: it gets a minute."""

START_MISSES = 24
"""How many checks a program may miss until it works for the first time."""


class Watch:
    """Count how often in a row a program missed its check."""

    def __init__(self, works: Callable[[], bool], misses: int) -> None:
        self._works = works
        self._misses = misses
        self.begin()

    def begin(self) -> None:
        """Count anew: the program has just been started."""
        self._allowed = START_MISSES
        self._missed = 0

    def check(self) -> bool:
        """Check once; return False when the program has missed too many checks and must be restarted."""
        if self._works():
            self._missed, self._allowed = 0, self._misses
            return True
        self._missed += 1
        if self._missed < self._allowed:
            return True
        self.begin()
        return False


def watches_for(settings: Settings, programs: Iterable[Program]) -> dict[str, Watch]:
    """Return the watch of each of these programs that can be checked, by the program's name."""
    known = {
        SERVICE.name: Watch(lambda: is_healthy(settings.host, settings.port), SERVICE_MISSES),
        CLOCK.name: Watch(lambda: clock_beats(settings.store_url), CLOCK_MISSES),
    }
    names = {program.name for program in programs}
    return {name: watch for name, watch in known.items() if name in names}
