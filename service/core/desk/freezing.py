"""Freeze and unfreeze, with a cache that no process uses for over a second, and never to refuse."""

from typing import Literal

from sayso.core.clock import HOUR_MS, new_id
from sayso.core.records.decisions import Actor
from sayso.core.records.freezes import ALL, JUMP_MS, TIME, ClockReading, Freeze, Loss, describe_jump
from sayso.core.sentences import join_words
from sayso.errors import Conflict, InvalidInput, NotFound, Unavailable
from service.core.cache import Cache, Refresher
from service.core.store.freezes import FreezeStore, Kept

HOLDS_WITHIN_MS = 1_000  # the age, ms, up to which cached freezes allow a start
_CLOCK = "clock"
_DESK = "desk"
_NAMED = 10


class Freezes:
    """The freezes of one tenant, by admins and by clocks."""

    def __init__(self, store: FreezeStore, refresher: Refresher) -> None:
        self._store, self._cache = store, Cache(store.load, refresher)
        self.last_reading = store.load_reading

    async def known(self, fresh: bool = False) -> tuple[Freeze, ...]:
        """Return all freezes, including ended ones, as cached or, with `fresh`, as of now."""
        return (await self._cache.find(fresh=fresh)).freezes

    async def in_force(self, *, fresh: bool = False) -> list[Freeze]:
        return [freeze for freeze in await self.known(fresh=fresh) if freeze.in_force]

    def last_known(self) -> list[Freeze]:
        return [freeze for freeze in self._last().freezes if freeze.in_force]

    def mark_ms(self) -> int:
        """Return the latest time that a clock confirmed, as of the last read, or 0."""
        return self._last().mark_ms

    def sure_until_ms(self) -> int:
        """Return the time up to which the last read allows a start; 0 before the first read."""
        at_ms = self._last().at_ms
        return at_ms + HOLDS_WITHIN_MS if at_ms else 0

    def delivered_ms(self) -> int:
        """Return the time up to which all sinks have the checkpoints, as of the last read, or 0."""
        return self._last().delivered_ms

    async def check_delivered(self, within_h: int | None) -> None:
        """Raise `Unavailable` where the sinks miss the checkpoints of so many hours."""
        if within_h is None:
            return
        kept = await self._cache.find()
        if kept.at_ms - kept.delivered_ms > within_h * HOUR_MS:
            raise Unavailable(
                f"No checkpoint was delivered within {within_h} h (SAYSO_CHECKPOINTS_REQUIRED_H), so nothing is "
                "decided. Ask the operator to correct the sinks; `sayso doctor` says what is wrong."
            )

    async def freeze(self, scope: str, reason: str, by: Actor) -> Freeze:
        """Freeze a scope; a scope that is frozen stays unchanged. Raises `InvalidInput` for a pattern."""
        if "*" in scope:
            raise InvalidInput(
                "A freeze names one tool or agent, not a pattern. Freeze each by its name, or everything."
            )
        for freeze in await self.in_force(fresh=True):
            if freeze.scope == scope:
                return freeze
        now_ms = await self._store.now_ms()
        await self._store.forget_old(now_ms)
        made = Freeze(id=new_id("frz"), scope=scope, reason=reason, by=by.id, at_ms=now_ms)
        await self._store.save(made)
        await self.known(fresh=True)
        return made

    async def unfreeze(
        self, name: str, by: Actor, deadlines: Literal["move", "pass"] = "move", checked: str = ""
    ) -> Freeze:
        """End a freeze, by its id or scope; after one of time `deadlines` may pass. Raises `NotFound`, `Conflict`.

        One because the store went back ends only with what was `checked`; raises `InvalidInput` without.
        """
        known = await self.known(fresh=True)
        with_id = [freeze for freeze in known if freeze.id == name]
        named = with_id or [freeze for freeze in known if freeze.scope == name]
        current = [freeze for freeze in named if freeze.in_force]
        if not named or (not current and named[0].scope == name):
            scopes = join_words(list({freeze.scope: None for freeze in known if freeze.in_force})[:_NAMED])
            frozen = f"Frozen at the moment: {scopes}." if scopes else "Nothing is frozen."
            raise NotFound(f"There is no freeze {name!r} in force. {frozen}")
        if not current:
            return named[0]
        if deadlines == "pass" and current[0].scope != TIME:
            raise Conflict("Deadlines can pass only after a freeze of time. Unfreeze without letting them pass.")
        if not checked and any(freeze.lost for freeze in current):
            raise InvalidInput(
                "The store went back, so calls of that time may have run. Check the systems that they change, then say "
                "in `checked` what you checked."
            )
        ended = [await self._unfreeze(freeze, by.id, deadlines, checked=checked) for freeze in current]
        return ended[0]

    async def note_loss(self, loss: Loss) -> Freeze:
        """Freeze everything because the store went back; a freeze for an earlier notice is widened."""
        made = Freeze(id=new_id("frz"), scope=ALL, by=_DESK, at_ms=await self._store.now_ms())
        for freeze in await self.in_force(fresh=True):
            if freeze.lost is not None:
                made, before = freeze, freeze.lost
                from_ms, to_ms = min(loss.from_ms, before.from_ms), max(loss.to_ms, before.to_ms)
                loss = Loss(commits=max(loss.commits, before.commits), from_ms=from_ms, to_ms=to_ms)
        made = made.model_copy(update={"lost": loss, "reason": loss.describe()})
        await self._store.save(made)
        await self.known(fresh=True)
        return made

    async def doubt_time(self, last_ms: int, now_ms: int) -> Freeze:
        """Freeze time from the last confirmed time; an existing freeze of time is extended to this jump."""
        frozen = [freeze for freeze in await self.in_force(fresh=True) if freeze.scope == TIME]
        reason = describe_jump(last_ms, now_ms)
        made = Freeze(id=new_id("frz"), scope=TIME, reason=reason, by=_CLOCK, at_ms=last_ms, jumped_to_ms=now_ms)
        if frozen:
            made = frozen[0].model_copy(update={"jumped_to_ms": now_ms})
        await self._store.save(made)
        await self.known(fresh=True)
        return made

    async def notice_return(self, back_ms: int, now_ms: int) -> Freeze | None:
        """End a freeze of time when the store's clock went back by its jump; return the ended freeze."""
        for freeze in await self.in_force(fresh=True):
            if freeze.scope == TIME and abs((freeze.jumped_to_ms or 0) - freeze.at_ms - back_ms) <= JUMP_MS:
                return await self._unfreeze(freeze, _CLOCK, "pass", now_ms)
        return None

    async def save_reading(self, reading: ClockReading, *, went_back: bool = False) -> None:
        """Save a reading and set the mark to it, unless time is in doubt. The mark goes back only with the clock."""
        doubted = any(freeze.scope == TIME for freeze in await self.in_force(fresh=True))
        mark_ms = self.mark_ms()
        if not doubted:
            mark_ms = reading.at_ms if went_back else max(reading.at_ms, mark_ms)
        await self._store.save_reading(reading, mark_ms)
        await self.known(fresh=True)

    async def note_settled(self, freeze: Freeze) -> None:
        """Record that every suspension held by an ended freeze was resumed."""
        await self._store.save(freeze.model_copy(update={"settled": True}))
        await self.known(fresh=True)

    async def _unfreeze(
        self,
        freeze: Freeze,
        by: str,
        deadlines: Literal["move", "pass"],
        now_ms: int | None = None,
        checked: str = "",
    ) -> Freeze:
        now_ms = await self._store.now_ms() if now_ms is None else now_ms
        update = {"unfrozen_by": by, "unfrozen_at_ms": now_ms, "deadlines": deadlines, "checked": checked}
        unfrozen = freeze.model_copy(update=update)
        await self._store.save(unfrozen, now_ms if freeze.scope == TIME else None)
        await self.known(fresh=True)
        return unfrozen

    def _last(self) -> Kept:
        return self._cache.last() or Kept()
