"""All evidence of one run: its exchanges, its trail, the effects of its tools, its cards, and freezes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Verdict
from sayso.core.records.events import EventType, TrailEntry
from tests.chaos.evidence.client_log import Exchange
from tests.chaos.evidence.effects import EffectLine
from tests.chaos.evidence.freezes import FreezeLine, overlap_ms
from tests.chaos.evidence.provider_log import ProviderLine
from tests.chaos.evidence.trails import Trail
from tests.chaos.workload.plans import Plan

ItemKey = tuple[str, str]
"""A suspension's id and an item's."""


@dataclass(frozen=True)
class TrailItem:
    """An item in the trail; the second item of a call is about its doubt."""

    suspension_id: str
    item_id: str
    call_id: str
    tool: str
    deadline_at_ms: int
    is_in_doubt: bool


@dataclass(frozen=True)
class RecordedDecision:
    """A decision in the trail."""

    entry: TrailEntry
    suspension_id: str
    item_id: str
    decision_id: str
    action: str
    by: str
    by_kind: str
    channel: str
    message: str | None
    verdict: str | None


@dataclass(frozen=True)
class Closing:
    """The outcome of an item in the trail; without a decision it is the fallback's or a report's."""

    entry: TrailEntry
    verdict: str
    decision: RecordedDecision | None

    @property
    def may_run(self) -> bool:
        """Whether the call may run."""
        return self.verdict in (Verdict.APPROVED, Verdict.ANSWERED)


@dataclass
class TrailIndex:
    """The entries of a trail by subject."""

    owner: str = ""
    items: dict[ItemKey, TrailItem] = field(default_factory=dict)
    decisions: list[RecordedDecision] = field(default_factory=list)
    closings: dict[ItemKey, list[Closing]] = field(default_factory=lambda: defaultdict(list))
    evaluated: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    permits: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    completed: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    suspended: list[str] = field(default_factory=list)
    resumed: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    moved: list[TrailEntry] = field(default_factory=list)
    cancelled: TrailEntry | None = None

    def items_of(self, call_id: str) -> list[TrailItem]:
        """Return the items of a call in order."""
        return [item for item in self.items.values() if item.call_id == call_id]

    def closing_of(self, item: TrailItem) -> Closing | None:
        """Return the first outcome of an item."""
        found = self.closings.get((item.suspension_id, item.item_id))
        return found[0] if found else None


@dataclass
class History:
    """The evidence of one run."""

    plan: Plan
    trail: Trail
    exchanges: list[Exchange] = field(default_factory=list)
    effects: list[EffectLine] = field(default_factory=list)
    freezes: tuple[FreezeLine, ...] = ()
    provider: list[ProviderLine] = field(default_factory=list)

    @property
    def cards(self) -> list[ProviderLine]:
        """The cards that the provider accepted, as they were first."""
        return [line for line in self.provider if line.what == "sent"]

    @property
    def left(self) -> list[ProviderLine]:
        """The cards that kept their buttons until the end."""
        return [line for line in self.provider if line.what == "left"]

    @property
    def presses(self) -> list[ProviderLine]:
        """What people pressed and replied."""
        return [line for line in self.provider if line.what in ("pressed", "replied")]

    def versions_of(self, card: ProviderLine) -> list[ProviderLine]:
        """Return a card as it was first, and after each update."""
        versions = (line for line in self.provider if line.what in ("sent", "updated"))
        return [line for line in versions if (line.person, line.message_id) == (card.person, card.message_id)]

    def answers_to(self, press: ProviderLine) -> list[str]:
        """Return the answers to a press or reply; those that the provider refused if it accepted none."""
        found = [line for line in self.provider if line.key == press.key and line.what in ("answered", "refused")]
        accepted = [line.text for line in found if line.what == "answered"]
        return accepted or [line.text for line in found]

    @property
    def starts(self) -> list[EffectLine]:
        """The starts of all executions."""
        return [line for line in self.effects if line.what == "start"]

    @property
    def entries(self) -> tuple[TrailEntry, ...]:
        """The trail of the run."""
        return self.trail.entries

    @cached_property
    def index(self) -> TrailIndex:
        """The entries of the trail by subject."""
        return index_trail(self.entries)

    @cached_property
    def views(self) -> Mapping[ItemKey, dict[str, Any]]:
        """The items as reviewers saw them."""
        found: dict[ItemKey, dict[str, Any]] = {}
        for exchange in self.exchanges:
            if exchange.kind == "view" and isinstance(exchange.answer, dict):
                for item in _objects(exchange.answer.get("items")):
                    found[str(exchange.suspension_id), item["item_id"]] = item
        return found

    def freezes_of(self, tool: str) -> list[FreezeLine]:
        """Return the freezes that cover a tool of this run."""
        return [one for one in self.freezes if one.covers(self.plan.agent, tool)]

    def frozen_ms(self, item: TrailItem, to_ms: int, begun_by_ms: int | None = None) -> int:
        """Return for how long an item was frozen until `to_ms`; its deadline moves by as much.

        With `begun_by_ms`, count only freezes that had begun then.
        """
        freezes = self.freezes_of(item.tool)
        if begun_by_ms is not None:
            freezes = [one for one in freezes if one.at_ms <= begun_by_ms]
        return overlap_ms(freezes, self.suspended_at_ms(item), to_ms)

    def suspended_at_ms(self, item: TrailItem) -> int:
        """Return when an item was created."""
        return next(
            entry.at_ms
            for entry in self.entries
            if entry.type == EventType.RUN_PAUSED and entry.data["payload"]["suspension_id"] == item.suspension_id
        )

    def request_of(self, decision: RecordedDecision) -> Exchange | None:
        """Return the request that made a decision of the trail."""
        for exchange in self.exchanges:
            if (
                exchange.kind == "decide"
                and decision_id_of(exchange) == decision.decision_id
                and (exchange.suspension_id, exchange.item_id) == (decision.suspension_id, decision.item_id)
                and exchange.body.get("message") == decision.message
            ):
                return exchange
        return None

    def describe(self) -> str:
        """Return all evidence as text in the order of time."""
        lines = [(exchange.done_ms, f"client {_describe_exchange(exchange)}") for exchange in self.exchanges]
        lines += [(one.at_ms, f"trail  {one.seq} {one.type} {one.data}") for one in self.entries]
        lines += [(one.at_ms, f"effect {one.what} {one.tool} {one.model_dump_json()}") for one in self.effects]
        lines += [(one.at_ms, f"chat   {one.model_dump_json(exclude_defaults=True)}") for one in self.provider]
        texts = [f"{iso_utc(at_ms)} {text}" for at_ms, text in sorted(lines, key=lambda line: line[0])]
        return "\n".join([f"The run {self.trail.run_id} ({self.trail.status}): {self.plan}", *texts])


def decision_id_of(exchange: Exchange) -> str:
    """Return the id that the API promises for a decision with this key by this person."""
    return f"dec_{sha256(f'{exchange.actor} {exchange.key}'.encode()).hexdigest()[:32]}"


def index_trail(entries: Iterable[TrailEntry]) -> TrailIndex:
    """Sort the entries of a trail by subject."""
    index = TrailIndex()
    for entry in entries:
        if (file := _FILED.get(EventType(entry.type))) is not None:
            file(index, entry)
    return index


def _file_start(index: TrailIndex, entry: TrailEntry) -> None:
    index.owner = entry.data["owner"]


def _file_suspension(index: TrailIndex, entry: TrailEntry) -> None:
    payload = entry.data["payload"]
    suspension_id = payload["suspension_id"]
    index.suspended.append(suspension_id)
    for item in payload["items"]:
        index.items[suspension_id, item["item_id"]] = TrailItem(
            suspension_id=suspension_id,
            item_id=item["item_id"],
            call_id=item["call_id"],
            tool=item["tool_name"],
            deadline_at_ms=item["deadline_at_ms"],
            is_in_doubt=bool(index.items_of(item["call_id"])) or _was_allowed(index, item["call_id"]),
        )


def _was_allowed(index: TrailIndex, call_id: str) -> bool:
    return any(entry.data["action"] == "allow" for entry in index.evaluated.get(call_id, ()))


def _file_decision(index: TrailIndex, entry: TrailEntry) -> None:
    data = entry.data
    decision = RecordedDecision(
        entry=entry,
        suspension_id=data["suspension_id"],
        item_id=data["item_id"],
        decision_id=data["decision_id"],
        action=data["action"],
        by=data["by"]["id"],
        by_kind=data["by"]["kind"],
        channel=data["by"]["channel"],
        message=data["message"],
        verdict=data["verdict"],
    )
    index.decisions.append(decision)
    if decision.verdict is not None:
        index.closings[decision.suspension_id, decision.item_id].append(Closing(entry, decision.verdict, decision))


def _file_timeout(index: TrailIndex, entry: TrailEntry) -> None:
    data = entry.data
    index.closings[data["suspension_id"], data["item_id"]].append(Closing(entry, data["verdict"], None))


def _file_report(index: TrailIndex, entry: TrailEntry) -> None:
    key = entry.data["suspension_id"], entry.data["item_id"]
    index.closings[key].append(Closing(entry, Verdict.ANSWERED, None))


def _file_judged(index: TrailIndex, entry: TrailEntry) -> None:
    index.evaluated[entry.data["call_id"]].append(entry)


def _file_permit(index: TrailIndex, entry: TrailEntry) -> None:
    index.permits[entry.data["call_id"]].append(entry)


def _file_completed(index: TrailIndex, entry: TrailEntry) -> None:
    index.completed[entry.data["tool_call_id"]].append(entry)


def _file_resumed(index: TrailIndex, entry: TrailEntry) -> None:
    index.resumed[entry.data["suspension_id"]].append(entry)


def _file_cancelled(index: TrailIndex, entry: TrailEntry) -> None:
    index.cancelled = entry


def _file_move(index: TrailIndex, entry: TrailEntry) -> None:
    index.moved.append(entry)


_FILED = {
    EventType.RUN_STARTED: _file_start,
    EventType.RUN_PAUSED: _file_suspension,
    EventType.DECISION_RECORDED: _file_decision,
    EventType.TIMED_OUT: _file_timeout,
    EventType.RESULT_REPORTED: _file_report,
    EventType.POLICY_DECISION: _file_judged,
    EventType.PERMIT_REDEEMED: _file_permit,
    EventType.TOOL_COMPLETED: _file_completed,
    EventType.RUN_RESUMED: _file_resumed,
    EventType.RUN_CANCELLED: _file_cancelled,
    EventType.DEADLINES_MOVED: _file_move,
}


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _describe_exchange(exchange: Exchange) -> str:
    about = f"{exchange.suspension_id or ''}/{exchange.item_id or ''}"
    request = f"{exchange.actor} {exchange.kind} key={exchange.key} sent={iso_utc(exchange.at_ms)} {about}"
    return f"{request} {exchange.body} -> {exchange.status or 'no reply'} {exchange.answer}"
