"""Put together all that is known of one run: what its clients sent and got, its trail, and what its tools did.

`Reading` sorts the trail by what the checker asks of it. It believes nothing: it only files.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from sayso.clock import iso_utc
from sayso.records.decisions import Verdict
from sayso.records.events import EventType, TrailEntry
from tests.chaos.effects import EffectLine
from tests.chaos.freezes import FreezeLine, overlap_ms
from tests.chaos.logs import Said
from tests.chaos.plans import Plan
from tests.chaos.trails import Trail

ItemKey = tuple[str, str]
"""A suspension's id and an item's."""


@dataclass(frozen=True)
class Asked:
    """An item as the trail says it was asked; a call's second item is a question about a doubt."""

    suspension_id: str
    item_id: str
    call_id: str
    tool: str
    deadline_at_ms: int
    about_doubt: bool


@dataclass(frozen=True)
class Word:
    """One decision as the trail has it."""

    entry: TrailEntry
    suspension_id: str
    item_id: str
    decision_id: str
    action: str
    by: str
    by_kind: str
    message: str | None
    verdict: str | None


@dataclass(frozen=True)
class Closing:
    """How an item got its outcome, as the trail has it; without a word nobody decided it."""

    entry: TrailEntry
    verdict: str
    word: Word | None

    @property
    def may_run(self) -> bool:
        """Whether it gave leave to run the call."""
        return self.verdict in (Verdict.APPROVED, Verdict.ANSWERED)


@dataclass
class Reading:
    """A trail, filed by what it tells of."""

    owner: str = ""
    asked: dict[ItemKey, Asked] = field(default_factory=dict)
    words: list[Word] = field(default_factory=list)
    closings: dict[ItemKey, list[Closing]] = field(default_factory=lambda: defaultdict(list))
    judged: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    permits: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    completed: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    paused: list[str] = field(default_factory=list)
    resumed: dict[str, list[TrailEntry]] = field(default_factory=lambda: defaultdict(list))
    moved: list[TrailEntry] = field(default_factory=list)
    cancelled: TrailEntry | None = None

    def items_of(self, call_id: str) -> list[Asked]:
        """Return the items about a call, in the order they were asked."""
        return [asked for asked in self.asked.values() if asked.call_id == call_id]

    def closing_of(self, asked: Asked) -> Closing | None:
        """Return the first outcome that the trail has for an item."""
        found = self.closings.get((asked.suspension_id, asked.item_id))
        return found[0] if found else None


@dataclass
class History:
    """One run, from all sides."""

    plan: Plan
    trail: Trail
    said: list[Said] = field(default_factory=list)
    effects: list[EffectLine] = field(default_factory=list)
    freezes: tuple[FreezeLine, ...] = ()

    @property
    def starts(self) -> list[EffectLine]:
        """Every execution of a tool that began."""
        return [line for line in self.effects if line.what == "start"]

    @property
    def entries(self) -> tuple[TrailEntry, ...]:
        """The run's trail."""
        return self.trail.entries

    @cached_property
    def reading(self) -> Reading:
        """The trail, filed."""
        return read_trail(self.entries)

    @cached_property
    def seen(self) -> Mapping[ItemKey, dict[str, Any]]:
        """The items as reviewers saw them."""
        found: dict[ItemKey, dict[str, Any]] = {}
        for said in self.said:
            if said.kind == "see" and isinstance(said.answer, dict):
                for item in _objects(said.answer.get("items")):
                    found[str(said.suspension_id), item["item_id"]] = item
        return found

    def freezes_of(self, tool: str) -> list[FreezeLine]:
        """Return the freezes in which a tool of this run stood still."""
        return [one for one in self.freezes if one.covers(self.plan.agent, tool)]

    def frozen_ms(self, asked: Asked, to_ms: int, begun_by_ms: int | None = None) -> int:
        """Return for how long an item stood still from when it was asked to a moment: so much later is its deadline.

        With `begun_by_ms`, by the freezes alone that had begun by then.
        """
        freezes = self.freezes_of(asked.tool)
        if begun_by_ms is not None:
            freezes = [one for one in freezes if one.at_ms <= begun_by_ms]
        return overlap_ms(freezes, self.asked_at_ms(asked), to_ms)

    def asked_at_ms(self, asked: Asked) -> int:
        """Return when an item was asked."""
        return next(
            entry.at_ms
            for entry in self.entries
            if entry.type == EventType.RUN_PAUSED and entry.data["payload"]["suspension_id"] == asked.suspension_id
        )

    def request_of(self, word: Word) -> Said | None:
        """Return the very request that a decision in the trail stems from."""
        for said in self.said:
            if (
                said.kind == "decide"
                and decision_id_of(said) == word.decision_id
                and (said.suspension_id, said.item_id) == (word.suspension_id, word.item_id)
                and said.body.get("message") == word.message
            ):
                return said
        return None

    def tell(self) -> str:
        """Return everything that is known of the run, in the order of time."""
        lines = [(said.done_ms, f"client {_describe_said(said)}") for said in self.said]
        lines += [(one.at_ms, f"trail  {one.seq} {one.type} {one.data}") for one in self.entries]
        lines += [(one.at_ms, f"effect {one.what} {one.tool} {one.model_dump_json()}") for one in self.effects]
        told = [f"{iso_utc(at_ms)} {text}" for at_ms, text in sorted(lines, key=lambda line: line[0])]
        return "\n".join([f"The run {self.trail.run_id} ({self.trail.status}): {self.plan}", *told])


def decision_id_of(said: Said) -> str:
    """Return the id that a decision with this key of this person has, as the API promises."""
    return f"dec_{sha256(f'{said.actor} {said.key}'.encode()).hexdigest()[:32]}"


def read_trail(entries: Iterable[TrailEntry]) -> Reading:
    """File a trail's entries."""
    reading = Reading()
    for entry in entries:
        if (file := _FILED.get(EventType(entry.type))) is not None:
            file(reading, entry)
    return reading


def _file_start(reading: Reading, entry: TrailEntry) -> None:
    reading.owner = entry.data["owner"]


def _file_pause(reading: Reading, entry: TrailEntry) -> None:
    payload = entry.data["payload"]
    suspension_id = payload["suspension_id"]
    reading.paused.append(suspension_id)
    for item in payload["items"]:
        reading.asked[suspension_id, item["item_id"]] = Asked(
            suspension_id=suspension_id,
            item_id=item["item_id"],
            call_id=item["call_id"],
            tool=item["tool_name"],
            deadline_at_ms=item["deadline_at_ms"],
            about_doubt=bool(reading.items_of(item["call_id"])) or _was_allowed(reading, item["call_id"]),
        )


def _was_allowed(reading: Reading, call_id: str) -> bool:
    return any(entry.data["action"] == "allow" for entry in reading.judged.get(call_id, ()))


def _file_word(reading: Reading, entry: TrailEntry) -> None:
    data = entry.data
    word = Word(
        entry=entry,
        suspension_id=data["suspension_id"],
        item_id=data["item_id"],
        decision_id=data["decision_id"],
        action=data["action"],
        by=data["by"]["id"],
        by_kind=data["by"]["kind"],
        message=data["message"],
        verdict=data["verdict"],
    )
    reading.words.append(word)
    if word.verdict is not None:
        reading.closings[word.suspension_id, word.item_id].append(Closing(entry, word.verdict, word))


def _file_timeout(reading: Reading, entry: TrailEntry) -> None:
    data = entry.data
    reading.closings[data["suspension_id"], data["item_id"]].append(Closing(entry, data["verdict"], None))


def _file_report(reading: Reading, entry: TrailEntry) -> None:
    key = entry.data["suspension_id"], entry.data["item_id"]
    reading.closings[key].append(Closing(entry, Verdict.ANSWERED, None))


def _file_judged(reading: Reading, entry: TrailEntry) -> None:
    reading.judged[entry.data["call_id"]].append(entry)


def _file_permit(reading: Reading, entry: TrailEntry) -> None:
    reading.permits[entry.data["call_id"]].append(entry)


def _file_completed(reading: Reading, entry: TrailEntry) -> None:
    reading.completed[entry.data["tool_call_id"]].append(entry)


def _file_resumed(reading: Reading, entry: TrailEntry) -> None:
    reading.resumed[entry.data["suspension_id"]].append(entry)


def _file_cancelled(reading: Reading, entry: TrailEntry) -> None:
    reading.cancelled = entry


def _file_move(reading: Reading, entry: TrailEntry) -> None:
    reading.moved.append(entry)


_FILED = {
    EventType.RUN_STARTED: _file_start,
    EventType.RUN_PAUSED: _file_pause,
    EventType.DECISION_RECORDED: _file_word,
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


def _describe_said(said: Said) -> str:
    about = f"{said.suspension_id or ''}/{said.item_id or ''}"
    told = f"{said.actor} {said.kind} key={said.key} sent={iso_utc(said.at_ms)} {about}"
    return f"{told} {said.body} -> {said.status or 'no reply'} {said.answer}"
