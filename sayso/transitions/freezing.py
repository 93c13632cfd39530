"""Stop the world safely: say what is frozen, hold what time would do meanwhile, and make the lost time up afterwards.

Plain functions on frozen records. What is decided stays decided and people may go on deciding; nothing new starts, and
no deadline passes. Frozen time is made up once, whatever freezes overlap: each item knows up to when it was.

When the store's clock jumped, time itself is frozen: what is decided goes on, but nothing that was asked before the
jump expires by it until it is known whether the clock is right.
"""

from collections.abc import Iterable

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.clock import iso_utc
from sayso.errors import ClockInDoubt, Frozen
from sayso.records.events import Event, EventType
from sayso.records.freezes import TIME, Freeze
from sayso.records.items import Item, digest_item
from sayso.records.suspensions import Change, Status, SuspensionRecord
from sayso.transitions.clock_jumps import JUMP_MS
from sayso.transitions.closing import next_due
from sayso.transitions.table import check_step

FROZEN_RETRY_MS = 5_000
"""How soon somebody looks again at what is due and frozen."""


def doubt_time(freezes: tuple[Freeze, ...], mark_ms: int, now_ms: int) -> tuple[Freeze, ...]:
    """Return the freezes, with one of time where no clock has said so far that time is right since `mark_ms`."""
    if not mark_ms or now_ms - mark_ms <= JUMP_MS or any(one.scope == TIME and one.in_force for one in freezes):
        return freezes
    reason = f"No clock has looked since {iso_utc(mark_ms)}"
    return (*freezes, Freeze(id="clock", scope=TIME, reason=reason, by="clock", at_ms=mark_ms, jumped_to_ms=now_ms))


def check_in_time(freezes: Iterable[Freeze], record: SuspensionRecord, item: Item, now_ms: int) -> None:
    """Raise `ClockInDoubt` when the item's deadline has passed, if at all, since the clock is in doubt."""
    for freeze in freezes:
        if item.open and _in_doubt(freeze, record, item.terms.deadline_at_ms, now_ms):
            deadline = iso_utc(item.terms.deadline_at_ms)
            raise ClockInDoubt(
                f"Nobody can say whether the deadline {deadline} has passed. {freeze.reason}. "
                "The item stays open; decide it when the clock is known to be right. Nothing was changed."
            )


def check_start(freezes: Iterable[Freeze], record: SuspensionRecord, tools: Iterable[str], now_ms: int) -> None:
    """Raise `Frozen` when the record's agent or a tool that would start is frozen, or whether it may start in doubt."""
    names = tuple(tools)
    for freeze in freezes:
        may_start = [item for item in record.items if item.outcome and item.outcome.may_run and not item.permit]
        if any(_in_doubt(freeze, record, item.start_by_ms, now_ms) for item in may_start):
            raise ClockInDoubt(
                f"Nobody can say whether the call may still start. {freeze.reason}. The run waits until that is known.",
                tools=list(names),
            )
        if freeze.in_force and any(freeze.covers(record.run.agent, tool) for tool in (None, *names)):
            why = f": {freeze.reason.removesuffix('.')}" if freeze.reason else ""
            raise Frozen(
                f"{freeze.by} has frozen {describe_scope(freeze.scope)}{why}. The run waits until an admin lifts that.",
                scope=freeze.scope,
                tools=list(names),
            )


def tools_to_start(record: SuspensionRecord) -> tuple[str, ...]:
    """Return the tools that would start first if the run were taken up now."""
    asked = (item.tool.name for item in record.items if item.outcome and item.outcome.may_run and not item.permit)
    return (*asked, *record.waits_for)


def spare_lease(freezes: Iterable[Freeze], record: SuspensionRecord, now_ms: int) -> bool:
    """Whether the lease is over by a jump only, and its worker has not had the time to renew it since."""
    held = record.lease
    if held is None or record.status is not Status.RESUMING:
        return False
    length_ms = held.until_ms - record.updated_at_ms
    return any(held.until_ms <= (to_ms := one.jumped_to_ms or 0) <= now_ms < to_ms + length_ms for one in freezes)


def describe_scope(scope: str) -> str:
    """Say what a scope means."""
    kind, _, name = scope.partition(":")
    if kind == TIME:
        return "time"
    return f"the {kind} {name}" if name else "everything"


def find_held(record: SuspensionRecord, freezes: Iterable[Freeze]) -> frozenset[str]:
    """Return the open items whose time stands still now."""
    now = [freeze for freeze in freezes if freeze.in_force]
    return frozenset(
        item.item_id
        for item in record.items
        if item.open
        and any(_holds(one, record, item) or _doubted(one, record, item.terms.deadline_at_ms) for one in now)
    )


def lost_ms(record: SuspensionRecord, item: Item, freezes: Iterable[Freeze], now_ms: int) -> int:
    """Return for how long the item was frozen and that was not made up yet."""
    return _count_lost(record, item, freezes, now_ms)[0]


def _count_lost(record: SuspensionRecord, item: Item, freezes: Iterable[Freeze], now_ms: int) -> tuple[int, int]:
    """Return how much time was lost, and up to when that is counted: to the last moment that was, not to now.

    A freeze may have begun since that is not known here yet; it is to be counted from its first moment on.
    """
    since_ms = counted_to_ms = _counted_from(record, item)
    spans = sorted(
        (max(one.at_ms, since_ms), min(now_ms, now_ms if one.unfrozen_at_ms is None else one.unfrozen_at_ms))
        for one in freezes
        if _costs_time(one, record, item)
    )
    lost = 0
    for begin_ms, end_ms in spans:
        lost += max(0, end_ms - max(begin_ms, counted_to_ms))
        counted_to_ms = max(counted_to_ms, end_ms)
    return lost, counted_to_ms


def _counted_from(record: SuspensionRecord, item: Item) -> int:
    """Return from when on frozen time was not made up yet."""
    return max(item.outcome.at_ms if item.outcome else record.created_at_ms, item.held_to_ms)


def _costs_time(freeze: Freeze, record: SuspensionRecord, item: Item) -> bool:
    """Whether what the freeze took of the item's time is to be made up."""
    doubted = freeze.doubts(record) and not freeze.in_force and freeze.deadlines == "move"
    return doubted or _holds(freeze, record, item)


def _describe_freezes(record: SuspensionRecord, items: list[Item], freezes: Iterable[Freeze]) -> list[JsonValue]:
    """Say which freezes took time of these items, and who made and lifted them: they are forgotten before the trail."""
    return [
        one.model_dump(mode="json", include={"id", "scope", "by", "unfrozen_by"})
        for one in freezes
        if any(_costs_time(one, record, item) and not _over_by(one, _counted_from(record, item)) for item in items)
    ]


def _over_by(freeze: Freeze, at_ms: int) -> bool:
    return freeze.unfrozen_at_ms is not None and freeze.unfrozen_at_ms <= at_ms


def shift_deadlines(record: SuspensionRecord, freezes: Iterable[Freeze], now_ms: int) -> Change:
    """Put off every moment of the items that are no longer frozen by as long as they were; done twice, it is once."""
    check_step(record, "shift_deadlines")
    known = tuple(freezes)
    held = find_held(record, known)
    moved: list[JsonObject] = []
    late: list[Item] = []
    items: list[Item] = []
    for item in record.items:
        lost, to_ms = _count_lost(record, item, known, now_ms)
        if item.item_id in held or item.permit:
            lost = 0
        items.append(_put_off(record, item, lost, to_ms) if lost else item)
        if lost:
            late.append(item)
            moved.append({"item_id": item.item_id, "by_ms": lost, "deadline_at_ms": items[-1].terms.deadline_at_ms})
    if not moved:
        return Change(record)
    shifted = record.model_copy(update={"items": tuple(items), "updated_at_ms": now_ms})
    if record.status is Status.PENDING:
        shifted = shifted.model_copy(update={"due_at_ms": next_due(shifted)})
    data: JsonObject = {
        "suspension_id": record.id,
        "items": [*moved],
        "freezes": _describe_freezes(record, late, known),
    }
    return Change(shifted, (Event(type=EventType.DEADLINES_MOVED, data=data),))


def hold(record: SuspensionRecord, now_ms: int, why: str | None = None) -> Change:
    """Look at something frozen again in a while: it is due, and nothing may come of that now. `why` is shown."""
    check_step(record, "hold")
    update: dict[str, object] = {"due_at_ms": now_ms + FROZEN_RETRY_MS}
    if why is not None:
        update["receipt"] = record.receipt.model_copy(update={"error": why})
    return Change(record.model_copy(update=update))


def _holds(freeze: Freeze, record: SuspensionRecord, item: Item) -> bool:
    """Whether its time stands still. What was promised to whoever asked passes all the same; starting is refused."""
    return not item.fixed and freeze.covers(record.run.agent, item.tool.name)


def _doubted(freeze: Freeze, record: SuspensionRecord, moment_ms: int) -> bool:
    """Whether the freeze is of time, and the moment had not come when it began."""
    return freeze.in_force and freeze.doubts(record) and moment_ms > freeze.at_ms


def _in_doubt(freeze: Freeze, record: SuspensionRecord, moment_ms: int, now_ms: int) -> bool:
    return now_ms >= moment_ms and _doubted(freeze, record, moment_ms)


def _put_off(record: SuspensionRecord, item: Item, by_ms: int, to_ms: int) -> Item:
    """An open item's own moments move, with its digest; a decided one may start later than it was to."""
    if item.outcome is not None:
        return item.model_copy(update={"grace_ms": item.grace_ms + by_ms, "held_to_ms": to_ms})
    told, ahead = item.terms.remind_at_ms[: item.reminded], item.terms.remind_at_ms[item.reminded :]
    update = {
        "deadline_at_ms": item.terms.deadline_at_ms + by_ms,
        "extend_until_ms": item.terms.extend_until_ms and item.terms.extend_until_ms + by_ms,
        "remind_at_ms": (*told, *(at_ms + by_ms for at_ms in ahead)),
    }
    terms = item.terms.model_copy(update=update)
    digest = digest_item(record.binding, item.item_id, item.tool, item.tool.args, item.target_arg, terms)
    return item.model_copy(
        update={"terms": terms, "digest": digest, "held_ms": item.held_ms + by_ms, "held_to_ms": to_ms}
    )
