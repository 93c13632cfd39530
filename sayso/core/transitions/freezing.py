"""Transitions and checks of freezes: nothing frozen starts, and deadlines are shifted by the frozen time.

Frozen time is added once, however many freezes overlap. A jump of the store's clock freezes time itself: decided runs
continue, but nothing created before the jump expires until an admin says whether the clock is right.
"""

from collections.abc import Iterable

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.events import Event, EventType
from sayso.core.records.freezes import JUMP_MS, TIME, Freeze
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.closing import change_terms, next_due
from sayso.core.transitions.legal import check_step
from sayso.errors import ClockInDoubt, Frozen

FROZEN_RETRY_MS = 5_000  # the delay before a frozen record is due again


def doubt_time(freezes: tuple[Freeze, ...], mark_ms: int, now_ms: int) -> tuple[Freeze, ...]:
    """Return the freezes, plus one of time when no clock has confirmed the time since `mark_ms`."""
    doubted = any(freeze.scope == TIME and freeze.in_force for freeze in freezes)
    if not mark_ms or now_ms - mark_ms <= JUMP_MS or doubted:
        return freezes
    reason = f"No clock has confirmed the time since {iso_utc(mark_ms)}"
    return (*freezes, Freeze(id="clock", scope=TIME, reason=reason, by="clock", at_ms=mark_ms, jumped_to_ms=now_ms))


def check_in_time(freezes: Iterable[Freeze], record: SuspensionRecord, item: Item, now_ms: int) -> None:
    """Raise `ClockInDoubt` when the item's deadline may have passed since the clock is in doubt."""
    for freeze in freezes:
        if item.open and _in_doubt(freeze, record, item.terms.deadline_at_ms, now_ms):
            deadline = iso_utc(item.terms.deadline_at_ms)
            raise ClockInDoubt(
                f"It is unknown whether the deadline {deadline} has passed. {freeze.reason}. "
                "The item stays open. Decide it after an admin has confirmed the clock. Nothing was changed."
            )


def check_start(freezes: Iterable[Freeze], record: SuspensionRecord, tools: Iterable[str], now_ms: int) -> None:
    """Raise `Frozen` when the agent or a tool to start is frozen, `ClockInDoubt` when the start may be too late."""
    names = tuple(tools)
    for freeze in freezes:
        may_start = [item for item in record.items if item.outcome and item.outcome.may_run and not item.permit]
        if any(_in_doubt(freeze, record, item.start_by_ms, now_ms) for item in may_start):
            unknown = f"It is unknown whether the call may still start. {freeze.reason}. "
            raise ClockInDoubt(f"{unknown}The run waits until an admin has confirmed the clock.", tools=list(names))
        if freeze.in_force and any(freeze.covers(record.run.agent, tool) for tool in (None, *names)):
            why = f": {freeze.reason.removesuffix('.')}" if freeze.reason else ""
            frozen = f"{freeze.by} has frozen {describe_scope(freeze.scope)}{why}"
            problem = f"{frozen}. The run waits until an admin unfreezes it."
            raise Frozen(problem, scope=freeze.scope, tools=list(names))


def tools_to_start(record: SuspensionRecord) -> tuple[str, ...]:
    """Return the tools that would start first if the run continued now."""
    approved = (item for item in record.items if item.outcome and item.outcome.may_run and not item.permit)
    return (*(tool for item in approved for tool in item.tools), *record.waits_for)


def spare_lease(freezes: Iterable[Freeze], record: SuspensionRecord, now_ms: int) -> bool:
    """Whether only a clock jump ended the lease, and its worker has had no time to renew it."""
    held = record.lease
    if held is None or record.status is not Status.RESUMING:
        return False
    length_ms = held.until_ms - record.updated_at_ms
    return any(held.until_ms <= (to_ms := freeze.jumped_to_ms or 0) <= now_ms < to_ms + length_ms for freeze in freezes)


def describe_scope(scope: str) -> str:
    """Return the scope in words."""
    kind, _, name = scope.partition(":")
    if kind == TIME:
        return "time"
    return f"the {kind} {name}" if name else "everything"


def find_held(record: SuspensionRecord, freezes: Iterable[Freeze]) -> frozenset[str]:
    """Return the ids of the open items whose time is frozen now."""
    now = [freeze for freeze in freezes if freeze.in_force]
    return frozenset(
        item.item_id
        for item in record.items
        if item.open
        and any(_holds(freeze, record, item) or _doubted(freeze, record, item.terms.deadline_at_ms) for freeze in now)
    )


def find_freeze(record: SuspensionRecord, item: Item, freezes: Iterable[Freeze]) -> Freeze | None:
    """Return the first freeze in force that keeps the item's call from starting, or its time from passing."""
    over = record.status in (Status.RESUMED, Status.CANCELLED, Status.FAILED)
    if over or item.permit is not None or not (item.outcome is None or item.outcome.may_run):
        return None
    moment_ms = item.terms.deadline_at_ms if item.outcome is None else item.start_by_ms
    in_force = [freeze for freeze in freezes if freeze.in_force]
    frozen = (freeze for freeze in in_force if _covers(freeze, record, item) or _doubted(freeze, record, moment_ms))
    return next(frozen, None)


def lost_ms(record: SuspensionRecord, item: Item, freezes: Iterable[Freeze], now_ms: int) -> int:
    """Return how long the item was frozen, less the time already added."""
    return _count_lost(record, item, freezes, now_ms)[0]


def _count_lost(record: SuspensionRecord, item: Item, freezes: Iterable[Freeze], now_ms: int) -> tuple[int, int]:
    """Return the lost time, and the end of the last freeze: one that is not known yet must count from its start."""
    since_ms = counted_to_ms = _counted_from(record, item)
    spans = sorted(
        (max(freeze.at_ms, since_ms), min(now_ms, now_ms if freeze.unfrozen_at_ms is None else freeze.unfrozen_at_ms))
        for freeze in freezes
        if _costs_time(freeze, record, item)
    )
    lost = 0
    for begin_ms, end_ms in spans:
        lost += max(0, end_ms - max(begin_ms, counted_to_ms))
        counted_to_ms = max(counted_to_ms, end_ms)
    return lost, counted_to_ms


def _counted_from(record: SuspensionRecord, item: Item) -> int:
    return max(item.outcome.at_ms if item.outcome else record.created_at_ms, item.held_to_ms)


def _costs_time(freeze: Freeze, record: SuspensionRecord, item: Item) -> bool:
    doubted = freeze.doubts(record) and not freeze.in_force and freeze.deadlines == "move"
    return doubted or _holds(freeze, record, item)


def shift_deadlines(record: SuspensionRecord, freezes: Iterable[Freeze], now_ms: int) -> Change:
    """Shift every moment of the items that are no longer frozen by their frozen time; a second call changes nothing."""
    check_step(record, "shift_deadlines")
    known = tuple(freezes)
    held = find_held(record, known)
    moved: list[JsonObject] = []
    shifted_items: list[Item] = []
    items: list[Item] = []
    for item in record.items:
        lost, to_ms = _count_lost(record, item, known, now_ms)
        if item.item_id in held or item.permit or item.undoable:
            lost = 0
        items.append(_shift_item(record, item, lost, to_ms) if lost else item)
        if lost:
            shifted_items.append(item)
            moved.append({"item_id": item.item_id, "by_ms": lost, "deadline_at_ms": items[-1].terms.deadline_at_ms})
    if not moved:
        return Change(record)
    shifted = record.model_copy(update={"items": tuple(items), "updated_at_ms": now_ms})
    if record.status is Status.PENDING:
        shifted = shifted.model_copy(update={"due_at_ms": next_due(shifted)})
    data: JsonObject = {"suspension_id": record.id, "items": [*moved]}
    # Freezes are deleted before the audit trail.
    data["freezes"] = [
        freeze.model_dump(mode="json", include={"id", "scope", "by", "unfrozen_by"})
        for freeze in known
        if any(
            _costs_time(freeze, record, item)
            and not (freeze.unfrozen_at_ms is not None and freeze.unfrozen_at_ms <= _counted_from(record, item))
            for item in shifted_items
        )
    ]
    return Change(shifted, (Event(EventType.DEADLINES_MOVED, data),))


def hold(record: SuspensionRecord, now_ms: int, why: str | None = None) -> Change:
    """Make a frozen record due again later. `why` is shown."""
    check_step(record, "hold")
    update: dict[str, object] = {"due_at_ms": now_ms + FROZEN_RETRY_MS}
    if why is not None:
        update["receipt"] = record.receipt.model_copy(update={"error": why})
    return Change(record.model_copy(update=update))


def _holds(freeze: Freeze, record: SuspensionRecord, item: Item) -> bool:
    """Whether the item's time is frozen. Promised deadlines pass; only the start is refused."""
    return not item.fixed and _covers(freeze, record, item)


def _covers(freeze: Freeze, record: SuspensionRecord, item: Item) -> bool:
    return any(freeze.covers(record.run.agent, tool) for tool in item.tools)


def _doubted(freeze: Freeze, record: SuspensionRecord, moment_ms: int) -> bool:
    return freeze.in_force and freeze.doubts(record) and moment_ms > freeze.at_ms


def _in_doubt(freeze: Freeze, record: SuspensionRecord, moment_ms: int, now_ms: int) -> bool:
    return now_ms >= moment_ms and _doubted(freeze, record, moment_ms)


def _shift_item(record: SuspensionRecord, item: Item, by_ms: int, to_ms: int) -> Item:
    if item.outcome is not None:
        return item.model_copy(update={"grace_ms": item.grace_ms + by_ms, "held_to_ms": to_ms})
    past, ahead = item.terms.remind_at_ms[: item.reminded], item.terms.remind_at_ms[item.reminded :]
    terms = {
        "deadline_at_ms": item.terms.deadline_at_ms + by_ms,
        "extend_until_ms": item.terms.extend_until_ms and item.terms.extend_until_ms + by_ms,
        "remind_at_ms": (*past, *(at_ms + by_ms for at_ms in ahead)),
    }
    return change_terms(record, item, terms, held_ms=item.held_ms + by_ms, held_to_ms=to_ms)
