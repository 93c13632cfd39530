"""Confirmation of commits by replicas, which `SAYSO_REPLICAS` asks for."""

import asyncio

from redis.exceptions import ResponseError

from sayso.errors import Unavailable
from service.core.cache import share
from service.core.store.connection.pipeline import Pipeline
from service.core.store.loss.commit_counts import CommitCounts

_WITHIN_MS = 2_000
_RETRY_AFTER_S = 2


class Confirmer:
    """Waits until so many replicas have everything that the store had before; callers share one wait.

    It has a connection of its own, for a wait blocks those behind it.
    """

    def __init__(self, pipeline: Pipeline, counts: CommitCounts) -> None:
        self._pipeline, self._counts, self.replicas = pipeline, counts, 0
        self._running: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None
        pipeline.on_open = counts.compare

    async def confirm(self) -> None:
        """Return once the replicas have all commits of now; raises `Unavailable` after two seconds."""
        if not self.replicas:
            return
        epoch = self._counts.epoch
        if self._next is None:
            self._next = share(self._follow(self._running))
        reached = await asyncio.shield(self._next)
        if reached < self.replicas or epoch != self._counts.epoch:
            raise Unavailable(
                f"It is saved on the primary, but {self.replicas} replicas have not confirmed it yet ({reached} have), "
                "so a fail-over could lose it. Send it again with the same id: it is answered once they have it.",
                retry_after_s=_RETRY_AFTER_S,
            )

    async def _follow(self, before: asyncio.Task[int] | None) -> int:
        """Wait after the wait before, whose callers came earlier."""
        if before is not None:
            await asyncio.wait((before,))
        self._running, self._next = self._next, None
        return await self._wait()

    async def _wait(self) -> int:
        """Return how many replicas have everything up to a write of this connection, synced where they can say so."""
        mark = self._counts.mark()
        wanted = str(self.replicas), str(_WITHIN_MS // 2)
        # A replica answers before it has synced, and again only a second later, unless it is asked again.
        written, _, reply = await self._pipeline.ask_each(mark, ("WAIT", *wanted), ("WAITAOF", "1", *wanted))
        if isinstance(written, ResponseError):  # a wait without a write before it would confirm nothing
            raise Unavailable(f"The store refuses this just now: {written}") from written
        if isinstance(reply, ResponseError):  # an earlier server, or one without an append-only file
            _, reply = await self._pipeline.ask_each(mark, ("WAIT", *wanted))
        if isinstance(reply, ResponseError):
            raise Unavailable(f"The store cannot confirm what replicas have: {reply}. Unset SAYSO_REPLICAS.")
        return int(reply[1] if isinstance(reply, list) else reply)
