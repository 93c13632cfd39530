"""Parts of an item's page: the reason for the request, the call's result, and the changes to its arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import ActorKind, Decision, DecisionAction
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.items import Item, ItemKind
from sayso.core.sentences.outcomes import describe_decision, describe_shown, describe_voided
from sayso.core.text.summaries import Leaf, list_values
from sayso.core.transitions.closing import args_of
from service.web.content.deciding.trees import name_currencies
from service.web.content.deciding.word_changes import Piece, compare_texts
from service.web.content.facts import Facts

_EXTENSIONS_MS = tuple(minutes * 60_000 for minutes in (15, 60, 240, 1440))


@dataclass(frozen=True)
class Why:
    """The rule decision behind an item: all rules that matched, and any error in the evaluation."""

    matched: tuple[str, ...]
    error: str


class DecisionLine(NamedTuple):
    """One decision on an item in a sentence, with its message, its edits, and what the reviewer's page had shown."""

    sentence: str
    message: str
    at_ms: int
    edits: "list[Change]"
    seen: str


def list_decisions(item: Item, *, minor: bool = False) -> list[DecisionLine]:
    """Return the decisions on an item, and those that no longer count; `minor` is as in `compare_args`."""
    lines = [
        DecisionLine(
            describe_decision(item, decision),
            decision.message or "",
            decision.at_ms,
            find_changes(item, decision, minor=minor),
            describe_shown(decision.shown) if decision.by.kind is ActorKind.HUMAN else "",
        )
        for decision in item.decisions
    ]
    voided = [DecisionLine(describe_voided(decision), "", decision.at_ms, [], "") for decision in item.voided]
    return sorted((*lines, *voided), key=lambda line: line.at_ms)


@dataclass(frozen=True)
class Result:
    """The result of an item's call; `latency` is text such as ` in 12 ms`."""

    success: bool
    output: JsonValue
    error: str
    latency: str
    at_ms: int


@dataclass(frozen=True)
class Change:
    """One leaf of the arguments, requested (`was`) and decided (`now`); it is same, changed, added or removed.

    A changed long text also has its `pieces`.
    """

    path: str
    before: str
    after: str
    state: str
    pieces: tuple[Piece, ...] = ()
    was: Leaf | None = None
    now: Leaf | None = None


def find_why(item: Item, suspension_id: str, trail: Sequence[TrailEntry]) -> Why:
    """Return the item's rule decision from the trail."""
    evaluated = Facts({})
    for entry in trail[: _find_suspension(suspension_id, trail)]:
        facts = Facts(entry.data)
        if entry.type == EventType.POLICY_DECISION and facts.value("index") == item.index:
            evaluated = facts
    return Why(tuple(evaluated.texts("matched_rules")), evaluated.text("error"))


def find_model_text(suspension_id: str, trail: Sequence[TrailEntry]) -> str:
    """Return the model's text in the turn that requested the call."""
    for entry in reversed(trail[: _find_suspension(suspension_id, trail)]):
        if entry.type == EventType.LLM_COMPLETED:
            return Facts(entry.data).text("text")
    return ""


def find_result(item: Item, suspension_id: str, trail: Sequence[TrailEntry]) -> Result | None:
    """Return the result of the item's call, or None before there is one."""
    for entry in trail[_find_suspension(suspension_id, trail) :]:
        facts = Facts(entry.data)
        if entry.type == EventType.RUN_PAUSED and facts.object("payload").text("suspension_id") != suspension_id:
            return None
        if entry.type in (EventType.TOOL_COMPLETED, EventType.OUTCOME_REPORTED) and _is_about(item, facts):
            success, output, error = facts.flag("success"), facts.value("output"), facts.text("error")
            return Result(success, output, error, facts.latency(), entry.at_ms)
    return None


def find_doubt(item: Item, suspension_id: str, trail: Sequence[TrailEntry]) -> str:
    """Return the path of the later item that asks whether this item's call ran; empty if there is none."""
    for entry in trail[_find_suspension(suspension_id, trail) + 1 :]:
        payload = Facts(entry.data).object("payload")
        for row in payload.objects("items") if entry.type == EventType.RUN_PAUSED else ():
            about = (row.text("call_id"), row.text("tool_name"), row.text("kind"))
            if about == (item.call_id, item.tool.name, ItemKind.INPUT):
                return f"/items/{payload.text('suspension_id')}/{row.text('item_id')}"
    return ""


def list_extensions(item: Item) -> list[int]:
    """Return the new deadlines on offer for an open item; the last one is the latest allowed."""
    deadline_ms, limit_ms = item.terms.deadline_at_ms, item.terms.extend_until_ms
    if not item.open or limit_ms <= deadline_ms:
        return []
    return [*(deadline_ms + by_ms for by_ms in _EXTENSIONS_MS if deadline_ms + by_ms < limit_ms), limit_ms]


def compare_args(requested: JsonObject, decided: JsonObject, *, minor: bool = False) -> list[Change]:
    """Return every leaf of both; with `minor`, amounts may be in cents and have no currency."""
    before, after = (
        {leaf.path: leaf for leaf in name_currencies(list_values(args), minor=minor)} if args else {}
        for args in (requested, decided)
    )
    rows = []
    for path in dict.fromkeys((*before, *after)):
        was, now = before.get(path), after.get(path)
        old, new = was.text if was else "", now.text if now else ""
        state = "added" if was is None else "removed" if now is None else "same" if old == new else "changed"
        rows.append(Change(path, old, new, state, compare_texts(old, new) if state == "changed" else (), was, now))
    return rows


def find_changes(item: Item, decision: Decision, *, minor: bool = False) -> list[Change]:
    """Return the leaves that one decision changes, so that other reviewers can compare."""
    if item.erasure is not None or (decision.args is None and decision.action is not DecisionAction.VALUE):
        return []
    return [row for row in compare_args(item.tool.args, args_of(item, decision), minor=minor) if row.state != "same"]


def _find_suspension(suspension_id: str, trail: Sequence[TrailEntry]) -> int:
    for index, entry in enumerate(trail):
        begins = entry.type == EventType.RUN_PAUSED
        if begins and Facts(entry.data).object("payload").text("suspension_id") == suspension_id:
            return index
    return len(trail)


def _is_about(item: Item, facts: Facts) -> bool:
    """Match by the index in the batch, because a model's call ids may be empty or repeated."""
    if isinstance(facts.value("index"), int):
        return facts.value("index") == item.index and facts.text("tool_name") == item.tool.name
    return bool(item.call_id) and facts.text("tool_call_id") == item.call_id
