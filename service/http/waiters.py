"""A limit on how many requests and streams of one credential wait at the same time in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from sayso.errors import TooManyRequests
from service.concurrency import Slots

RETRY_AFTER_S = 5


class Waiters:
    """Places for long polls and streams, by the name of whoever waits."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._slots = Slots(each)

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """Hold a place for the length of the block; raises `TooManyRequests` when `name` holds as many as it may."""
        with self._slots.take((name,)) as free:
            if not free:
                raise TooManyRequests(
                    f"{name} already waits with {self._each} requests and streams, as many as one key may "
                    f"(SAYSO_WAITS_PER_KEY). Close some of them, or come back in {RETRY_AFTER_S} s.",
                    limit=self._each,
                    retry_after_s=RETRY_AFTER_S,
                )
            yield
