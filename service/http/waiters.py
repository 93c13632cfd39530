"""A limit on the waiting requests and streams per credential in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from sayso.errors import TooManyRequests
from service.concurrency import Slots

RETRY_AFTER_S = 5


class Waiters:
    """Slots for long polls and streams, by the credential's name."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._slots = Slots(each)

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """Hold a slot during the block; raises `TooManyRequests` at the limit."""
        with self._slots.take((name,)) as free:
            if not free:
                raise TooManyRequests(
                    f"{name} already has {self._each} waiting requests and streams, the limit per key "
                    f"(SAYSO_WAITS_PER_KEY). Close some of them, or retry in {RETRY_AFTER_S} s.",
                    limit=self._each,
                    retry_after_s=RETRY_AFTER_S,
                )
            yield
