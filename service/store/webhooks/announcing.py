"""Announcements that wait to be fanned out to endpoints."""

from typing import Any

from service.store.connection.connecting import text, translated
from service.store.suspensions.announcements import Announcement
from service.store.suspensions.reading import name_stored
from service.store.tenants import TenantStore


class AnnouncementQueue:
    """The announcements of one tenant. The commit of a suspension writes them while an endpoint exists."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._key, self._readings = store.redis, store.keys.announcements, store.readings

    async def due(self, now_ms: int, limit: int = 200) -> list[tuple[str, Announcement | None]]:
        """Return waiting announcements with their stored form, the oldest first; None for an unreadable one."""
        async with translated():
            raws: list[Any] = await self._redis.zrangebyscore(self._key, "-inf", now_ms, start=0, num=limit)
        read = self._readings.read_other
        return [(text(raw), read(Announcement, raw, name_stored("announcement", raw))) for raw in raws]

    async def defer(self, stored: str, again_at_ms: int) -> None:
        """Postpone an announcement that cannot be sent yet, so that it does not delay the others."""
        async with translated():
            await self._redis.zadd(self._key, {stored: again_at_ms}, xx=True)

    async def remove(self, *stored: str) -> None:
        """Remove announcements whose messages are saved."""
        if stored:
            async with translated():
                await self._redis.zrem(self._key, *stored)

    async def bring_forward(self, now_ms: int) -> None:
        """Make every announcement due now, after the clock went back."""
        async with translated():
            later: list[Any] = await self._redis.zrangebyscore(self._key, f"({now_ms}", "+inf")
            if later:
                await self._redis.zadd(self._key, {text(raw): now_ms for raw in later}, xx=True)
