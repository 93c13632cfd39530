"""Changes to suspensions that depend on what is frozen, and suspensions before they are saved."""

from collections.abc import Awaitable, Callable
from functools import partial

from pydantic import JsonValue

from sayso.core.canonical_json import digest_json
from sayso.core.clock import new_id
from sayso.core.records.freezes import Freeze
from sayso.core.records.run_state import SealedState
from sayso.core.records.suspensions import Change, Origin, ResumeSpec, RunRef, Status, SuspensionRecord
from sayso.core.transitions.deciding import find_item, list_statements, void_decisions
from sayso.core.transitions.freezing import doubt_time
from sayso.errors import Frozen, OverLimit, Unavailable
from service.core.store.suspensions.commits import Idempotency
from service.core.store.suspensions.saving import Saved, Suspensions, Verb

_ROUNDS = 20  # attempts; each failure means that a limit was reached meanwhile
_BEHIND_MS = 20  # by how much a time that follows from an earlier reading may be behind; the commit allows as much


class Unsure(ValueError):
    """Earlier decisions count, so it matters whose still do. A batch leaves such a suspension to a tick of its own."""


KnownFreezes = Callable[[bool], Awaitable[tuple[Freeze, ...]]]  # with True as of now

Start = Callable[[SuspensionRecord, int, tuple[Freeze, ...]], Change]
"""A transition that starts calls: of the record, the time in ms and the freezes."""


async def no_freezes(_fresh: bool) -> tuple[Freeze, ...]:
    """Return no freezes, for a desk where nobody can freeze."""
    return ()


async def until_within(attempt: Callable[[], Awaitable[Saved]]) -> Saved:
    """Make an attempt that judges by counters, again while other calls reach their limits first."""
    for _ in range(_ROUNDS):
        try:
            return await attempt()
        except OverLimit:
            continue
    raise Unavailable("Too many calls count against the same limits; nothing was changed. Try again in a moment.")


class Changes:
    """The suspensions of a tenant and its freezes."""

    def __init__(self, suspensions: Suspensions, known_freezes: KnownFreezes, sure_until_ms: Callable[[], int]) -> None:
        self.suspensions, self.change = suspensions, suspensions.change
        self.known_freezes, self.sure_until_ms = known_freezes, sure_until_ms

    async def change_counted(
        self, suspension_id: str, item_id: str, verb: Verb, seen: Idempotency | None = None
    ) -> Saved:
        """Apply a decision on an item, after voiding decisions on it by people who are deactivated now."""

        def apply(record: SuspensionRecord, now_ms: int, inactive: frozenset[str] | None) -> Change:
            if inactive is None and record.status is Status.PENDING and list_statements(find_item(record, item_id)):
                raise Unsure
            voided = void_decisions(record, inactive, now_ms) if inactive else Change(record)
            change = verb(voided.record, now_ms)
            return change._replace(events=voided.events + change.events) if voided.events else change

        try:
            return await self.change(suspension_id, partial(apply, inactive=None), seen)
        except Unsure:
            inactive = await self.suspensions.find_inactive()
            return await self.change(suspension_id, partial(apply, inactive=inactive), seen)

    async def freezes(self) -> tuple[Freeze, ...]:
        return await self.known_freezes(False)

    def doubt_time(self, freezes: tuple[Freeze, ...], now_ms: int) -> tuple[Freeze, ...]:
        """Return the freezes, with one of time where no clock has confirmed `now_ms`."""
        return doubt_time(freezes, self.suspensions.mark_ms(), now_ms)

    async def start(self, suspension_id: str, start: Start, known: Saved | None = None) -> Saved:
        """Apply a transition that starts calls, while its freezes are valid; on `Frozen` read them again once."""
        try:
            verb, _ = await self.limit(start)
            return await self.change(suspension_id, verb, known=known)
        except Frozen:
            verb, _ = await self.limit(start, fresh=True)
            return await self.change(suspension_id, verb, known=known)

    async def limit(self, start: Start, *, fresh: bool = False) -> tuple[Verb, int]:
        """Return the transition under the freezes, and the store's time up to which they are valid; 0 without limit."""
        counts, epoch = self.suspensions.counts, self.suspensions.counts.epoch
        freezes = await self.known_freezes(fresh)
        until_ms = self.sure_until_ms()
        limited = limit_start(start, freezes, until_ms)

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            counts.check_settled(epoch)
            return limited(record, now_ms)

        return verb, until_ms


def limit_start(start: Start, freezes: tuple[Freeze, ...], until_ms: int) -> Verb:
    """Return the transition, not before a known end of a freeze, applied and saved up to `until_ms`; 0 is no limit."""
    ended_ms = max((freeze.unfrozen_at_ms or 0 for freeze in freezes), default=0)

    def verb(record: SuspensionRecord, now_ms: int) -> Change:
        if now_ms < ended_ms <= now_ms + _BEHIND_MS:
            now_ms = ended_ms
        if until_ms and now_ms > until_ms:
            raise Unavailable("It took too long to find out what is frozen; nothing was changed. Try again.")
        return start(record, now_ms, freezes)._replace(until_ms=until_ms)

    return verb


def draft_suspension(
    tenant: str, run: RunRef, *, state: SealedState | None, on_deny: str = "continue", step: int = 0
) -> SuspensionRecord:
    """Return an unsaved suspension; the transition sets its status and times."""
    return SuspensionRecord.model_validate(
        {
            "id": new_id("sus"),
            "tenant": tenant,
            "status": Status.PENDING,
            "created_at_ms": 0,
            "updated_at_ms": 0,
            "run": run,
            "step": step,
            "origin": Origin(),
            "resume": ResumeSpec(),
            "on_deny": on_deny,
            "state": state.ref if state else None,
        }
    )


def draft_following(record: SuspensionRecord, state: SealedState | None, step: int) -> SuspensionRecord:
    """Return the unsaved suspension that follows `record` in its run."""
    draft = draft_suspension(record.tenant, record.run, state=state, on_deny=record.on_deny, step=step)
    return draft.model_copy(update={"origin": record.origin, "resume": record.resume, "progress": record.progress})


def build_idempotency(actor: str, key: str | None, request: list[JsonValue], ref: str) -> Idempotency | None:
    """Return the caller's key with the fingerprint of the request; None without a key."""
    if key is None:
        return None
    return Idempotency(actor=actor, key=key, fingerprint=digest_json(request)[:32], ref=ref)
