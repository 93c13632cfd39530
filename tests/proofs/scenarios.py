"""Say who is around one run and what they do to its record, with the real verbs or with a broken one put in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sayso import deadlines, pauses, resumptions
from sayso.canonical import canonical_json
from sayso.decisions import Decision, DecisionAction
from sayso.requests import Ask, Item
from sayso.resumptions import Fence
from sayso.states import seal_state
from sayso.suspensions import Change, Intent, RunEnd, RunStatus, Status, SuspensionRecord
from tests.sayso.records import draft, person

GRID_MS = 3_000
"""All terms of a scenario are multiples of this, the time after which a decided run is looked at again."""

LEASE_MS = GRID_MS
STATES = {phase: seal_state(canonical_json({"phase": phase})) for phase in ("ask", "call", "act", "end")}
PHASES = {state.ref.digest: phase for phase, state in STATES.items()}
UNASKED = "-"
"""The call of a run that nobody has to be asked about."""


class Word(NamedTuple):
    """What a reviewer says of one item of the run's n-th pause; its start is number 0."""

    pause: int
    item_id: str
    action: str = "approve"
    args: dict[str, Any] | None = None
    value: Any = None


@dataclass(frozen=True)
class Verbs:
    """The verbs that are tried."""

    decide: Callable[..., Change] = pauses.decide
    cancel: Callable[..., Change] = pauses.cancel
    keep_time: Callable[..., Change] = deadlines.keep_time
    redrive: Callable[..., Change] = resumptions.redrive
    lease: Callable[..., Change] = resumptions.lease
    renew: Callable[..., Change] = resumptions.renew
    redeem: Callable[..., Change] = resumptions.redeem
    checkpoint: Callable[..., Change] = resumptions.checkpoint
    postpone: Callable[..., Change] = resumptions.postpone
    suspend_again: Callable[..., Change] = resumptions.suspend_again
    settle: Callable[..., Change] = resumptions.settle


@dataclass(frozen=True)
class Scenario:
    """One run and who is around it.

    The run makes a call that nobody is asked about where it `calls`, then asks `asks`, twice where it is `nested`, and
    ends. `attempts` is from how many on they are all the same; `copies`, how often an id may be on the ready list.
    """

    name: str
    asks: tuple[Ask, ...] = ()
    words: tuple[tuple[Word, ...], ...] = ()
    workers: tuple[str, ...] = ("w1", "w2")
    crashes: int = 3
    copies: int = 1
    attempts: int = 2
    calls: bool = False
    nested: bool = False
    cancels: bool = False
    broken: bool = False
    compares: bool = True
    verbs: Verbs = Verbs()

    @property
    def begins(self) -> str:
        """The phase in which the run starts."""
        return "call" if self.calls else "ask" if self.asks else "end"

    def idempotent(self, call: str) -> bool:
        """Whether the call may run twice with one key."""
        return call != UNASKED and self.asks[int(call[1:]) - 1].tool.idempotent

    def plan(self, record: SuspensionRecord, now_ms: int) -> tuple[str, ...]:
        """What a worker does once it has the lease, as the runner does it."""
        assert record.state is not None
        phase = PHASES[record.state.digest]
        if self.broken:
            return ("postpone",)
        if record.failed_by_fallback or any(not intent.idempotent for intent in record.journal):
            return ("settle failed",)
        if phase == "ask":
            return ("suspend_again",)
        onwards = ("suspend_again",) if self._asks_after(record) and phase != "end" else ("settle completed",)
        if phase == "call":
            return ("redeem unasked", f"run {UNASKED}", "checkpoint", *onwards)
        starting = [item.item_id for item in record.items if _may_start(item, now_ms)]
        if phase == "end" or not starting:
            return onwards
        return ("redeem", *(f"run {item_id}" for item_id in starting), "checkpoint", *onwards)

    def apply(
        self, record: SuspensionRecord, now_ms: int, verb: tuple[Any, ...], fence: Fence | None
    ) -> tuple[str, Change]:
        """Apply a verb as whoever is named beside it would; return its row in the table and the change."""
        verbs, doing = self.verbs, verb[0]
        if doing == "decide":
            return doing, verbs.decide(record, self._decision(record, verb[1], verb[2], now_ms), now_ms)
        if doing == "look":
            if record.status is Status.PENDING:
                return "keep_time", verbs.keep_time(record, now_ms)
            return "redrive", verbs.redrive(record, now_ms)
        if doing == "cancel":
            return doing, verbs.cancel(record, person("owner"), None, now_ms)
        if doing == "lease":
            return doing, verbs.lease(record, verb[1], LEASE_MS, now_ms)
        assert fence is not None
        return self._drive(record, now_ms, doing, fence)

    def _drive(self, record: SuspensionRecord, now_ms: int, doing: str, fence: Fence) -> tuple[str, Change]:
        verbs = self.verbs
        if doing == "renew":
            return doing, verbs.renew(record, fence, now_ms)
        if doing == "postpone":
            return doing, verbs.postpone(record, fence, "no such agent", now_ms)
        if doing == "redeem":
            starting = tuple(_intent(record, fence, item) for item in record.items if _may_start(item, now_ms))
            return doing, verbs.redeem(record, fence, starting, (), now_ms)
        if doing == "redeem unasked":  # as the desk does it: the state and the intent in one step
            saved = verbs.checkpoint(record, fence, STATES["call"], (), now_ms)
            spent = verbs.redeem(saved.record, fence, (_intent(record, fence, None),), (), now_ms)
            return "redeem", Change(spent.record, saved.events + spent.events, state=STATES["call"])
        if doing == "checkpoint":
            onwards = STATES["ask" if self._asks_after(record) else "end"]
            return doing, verbs.checkpoint(record, fence, onwards, (), now_ms)
        if doing == "suspend_again":
            following = draft(id=f"sus_{int(record.id.removeprefix('sus_')) + 1}", run=record.run)
            return doing, verbs.suspend_again(record, fence, following, self.asks, STATES["act"], (), now_ms)
        end = RunEnd(status=RunStatus(doing.removeprefix("settle ")))
        return "settle", verbs.settle(record, fence, end, (), now_ms)

    def _decision(self, record: SuspensionRecord, reviewer: int, said: int, now_ms: int) -> Decision:
        word = self.words[reviewer][said]
        return Decision(
            id=f"dec_{reviewer}_{said}",
            suspension_id=record.id,
            suspension_version=record.version,
            item_id=word.item_id,
            action=DecisionAction(word.action),
            args=word.args,
            value=word.value,
            args_digest=pauses.find_item(record, word.item_id).digest,
            by=person(f"reviewer {reviewer + 1}"),
            at_ms=now_ms,
        )

    def _asks_after(self, record: SuspensionRecord) -> bool:
        """Whether the run pauses once more after what it does at this pause."""
        return bool(self.asks) and (record.id == "sus_0" or (self.nested and record.id == "sus_1"))


def _may_start(item: Item, now_ms: int) -> bool:
    outcome = item.outcome
    if outcome is None or not outcome.may_run:
        return False
    return now_ms < outcome.start_by_ms or item.permit is not None


def _intent(record: SuspensionRecord, fence: Fence, item: Item | None) -> Intent:
    call = item.item_id if item is not None else UNASKED
    return Intent(
        item_id=item.item_id if item is not None else None,
        call_id=call,
        index=item.index if item is not None else 0,
        tool="refund",
        idempotency_key=f"{record.id}:{call}",
        idempotent=item.tool.idempotent if item is not None else False,
        attempt=fence.attempt,
        holder=fence.holder,
        begun_at_ms=record.updated_at_ms,
    )
