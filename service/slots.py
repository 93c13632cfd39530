"""Share out a few places: so many at once for each name, and no more."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Slots:
    """Places by name, in this process."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, names: Iterable[str]) -> Iterator[bool]:
        """Hold a place under every name for the length of the block; False, and none held, if one is full."""
        wanted = tuple(names)
        free = all(self._taken[name] < self._each for name in wanted)
        if free:
            self._taken.update(wanted)
        try:
            yield free
        finally:
            if free:
                self._taken.subtract(wanted)
                self._taken += Counter()
