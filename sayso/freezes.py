"""Stop the world safely: say what is frozen, hold what time would do meanwhile, and make the lost time up afterwards.

Plain functions on frozen records. What is decided stays decided and people may go on deciding; nothing new starts, and
no deadline passes. Frozen time is made up once, whatever freezes overlap: each item knows up to when it was.
"""

from collections.abc import Iterable

from pydantic import Field

from sayso.decisions import JsonObject
from sayso.errors import Frozen as FrozenError
from sayso.events import Event, EventType
from sayso.frozen import Frozen
from sayso.outcomes import next_look
from sayso.requests import Item, digest_item
from sayso.suspensions import Change, Status, SuspensionRecord, check_step

ALL = "all"
SCOPE_PATTERN = r"^(all|agent:[^\x00-\x1f]{1,200}|tool:[^\x00-\x1f]{1,200})$"
LOOK_AT_FROZEN_MS = 5_000
"""How soon somebody looks again at what is due and frozen."""


class Freeze(Frozen):
    """An admin's word that nothing new starts within `scope`: everything, one agent, or one tool."""

    id: str
    scope: str = Field(pattern=SCOPE_PATTERN)
    reason: str = Field(default="", max_length=2000)
    by: str
    at_ms: int
    lifted_by: str | None = None
    lifted_at_ms: int | None = None
    settled: bool = Field(default=False, description="Whether all that it held was woken after it was lifted.")

    @property
    def in_force(self) -> bool:
        """Whether nobody has lifted it."""
        return self.lifted_at_ms is None

    def covers(self, agent: str, tool: str | None = None) -> bool:
        """Whether a call of this tool by this agent is within the scope."""
        return self.scope in (ALL, f"agent:{agent}") or (tool is not None and self.scope == f"tool:{tool}")

    def held(self, record: SuspensionRecord) -> bool:
        """Whether anything of the record was within the scope."""
        tools = {item.tool.name for item in record.items} | set(record.waits_for)
        return any(self.covers(record.run.agent, tool) for tool in (None, *tools))


def check_start(freezes: Iterable[Freeze], record: SuspensionRecord, tools: Iterable[str]) -> None:
    """Raise `Frozen` when the record's agent or one of the tools that would start is frozen."""
    names = tuple(tools)
    for freeze in freezes:
        if freeze.in_force and any(freeze.covers(record.run.agent, tool) for tool in (None, *names)):
            why = f": {freeze.reason}" if freeze.reason else ""
            raise FrozenError(
                f"{freeze.by} has frozen {tell_scope(freeze.scope)}{why}. The run waits until an admin lifts that.",
                scope=freeze.scope,
                tools=list(names),
            )


def tools_to_start(record: SuspensionRecord) -> tuple[str, ...]:
    """Return the tools that would start first if the run were taken up now."""
    asked = (item.tool.name for item in record.items if item.outcome and item.outcome.may_run and not item.permit)
    return (*asked, *record.waits_for)


def tell_scope(scope: str) -> str:
    """Say what a scope means."""
    kind, _, name = scope.partition(":")
    return f"the {kind} {name}" if name else "everything"


def find_held(record: SuspensionRecord, freezes: Iterable[Freeze]) -> frozenset[str]:
    """Return the open items whose time stands still now."""
    now = [freeze for freeze in freezes if freeze.in_force]
    return frozenset(
        item.item_id for item in record.items if item.open and any(_holds(one, record, item) for one in now)
    )


def lost_ms(record: SuspensionRecord, item: Item, freezes: Iterable[Freeze], now_ms: int) -> int:
    """Return for how long the item was frozen and that was not made up yet."""
    since_ms = max(item.outcome.at_ms if item.outcome else record.created_at_ms, item.held_to_ms)
    spans = sorted(
        (max(one.at_ms, since_ms), min(now_ms, now_ms if one.lifted_at_ms is None else one.lifted_at_ms))
        for one in freezes
        if _holds(one, record, item)
    )
    lost, counted_to_ms = 0, since_ms
    for begin_ms, end_ms in spans:
        lost += max(0, end_ms - max(begin_ms, counted_to_ms))
        counted_to_ms = max(counted_to_ms, end_ms)
    return lost


def thaw(record: SuspensionRecord, freezes: Iterable[Freeze], now_ms: int) -> Change:
    """Put off every moment of the items that are no longer frozen by as long as they were; done twice, it is once."""
    check_step(record, "thaw")
    known = tuple(freezes)
    held = find_held(record, known)
    moved: list[JsonObject] = []
    items: list[Item] = []
    for item in record.items:
        lost = 0 if item.item_id in held or item.permit else lost_ms(record, item, known, now_ms)
        items.append(_put_off(record, item, lost, now_ms) if lost else item)
        if lost:
            moved.append({"item_id": item.item_id, "by_ms": lost, "deadline_at_ms": items[-1].terms.deadline_at_ms})
    if not moved:
        return Change(record)
    thawed = record.model_copy(update={"items": tuple(items), "updated_at_ms": now_ms})
    if record.status is Status.PENDING:
        thawed = thawed.model_copy(update={"look_at_ms": next_look(thawed)})
    data: JsonObject = {"suspension_id": record.id, "items": [*moved]}
    return Change(thawed, (Event(type=EventType.DEADLINES_MOVED, data=data),))


def hold(record: SuspensionRecord, now_ms: int) -> Change:
    """Look at something frozen again in a while: it is due, and nothing may come of that now."""
    check_step(record, "hold")
    return Change(record.model_copy(update={"look_at_ms": now_ms + LOOK_AT_FROZEN_MS, "updated_at_ms": now_ms}))


def _holds(freeze: Freeze, record: SuspensionRecord, item: Item) -> bool:
    """Whether its time stands still. What was promised to whoever asked passes all the same; starting is refused."""
    return not item.fixed and freeze.covers(record.run.agent, item.tool.name)


def _put_off(record: SuspensionRecord, item: Item, by_ms: int, now_ms: int) -> Item:
    """An open item's own moments move, with its digest; a decided one may start later than it was to."""
    if item.outcome is not None:
        return item.model_copy(update={"grace_ms": item.grace_ms + by_ms, "held_to_ms": now_ms})
    told, ahead = item.terms.remind_at_ms[: item.reminded], item.terms.remind_at_ms[item.reminded :]
    update = {
        "deadline_at_ms": item.terms.deadline_at_ms + by_ms,
        "extend_until_ms": item.terms.extend_until_ms and item.terms.extend_until_ms + by_ms,
        "remind_at_ms": (*told, *(at_ms + by_ms for at_ms in ahead)),
    }
    terms = item.terms.model_copy(update=update)
    digest = digest_item(record.binding, item.item_id, item.tool, item.tool.args, item.target_arg, terms)
    return item.model_copy(
        update={"terms": terms, "digest": digest, "held_ms": item.held_ms + by_ms, "held_to_ms": now_ms}
    )
