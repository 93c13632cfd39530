"""An item as its page shows it: its secrets masked, the agent's claims, the call's result, and what edits change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.clock import HOUR_MS
from sayso.core.records.decisions import ActorKind, Decision, DecisionAction
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.items import Answer, Item, ItemKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.sentences import join_words
from sayso.core.sentences.outcomes import describe_decision, describe_shown, describe_voided
from sayso.core.text.language import _
from sayso.core.text.redaction import Redacted
from sayso.core.text.summaries import Leaf, list_values
from sayso.core.transitions.closing import args_of
from sayso.errors import InvalidInput
from service.core.logs import log
from service.core.operations.masking import collect_secrets, find_secrets, mask_item, mask_record
from service.core.store.channels import ChannelNotes
from service.edge.web.content.blocks import Titles
from service.edge.web.content.diffs import Part, Piece, compare_lines, compare_texts
from service.edge.web.content.facts import Facts
from service.edge.web.content.timeline import Line
from service.edge.web.content.trees import name_currencies
from service.forms.answers import Forms, make_forms


@dataclass(frozen=True)
class Claims:
    """Unchecked statements: the run's title, the tool's description, the sent context, and the model's text."""

    title: str
    description: str
    context: JsonObject
    model_text: str

    def __bool__(self) -> bool:
        return bool(self.title or self.description or self.context or self.model_text)


def find_claims(record: SuspensionRecord, definition: ToolDefinition | None, model_text: str) -> Claims:
    """Return the agent's claims; with mode `poll` they include the tool's description, which no worker registered."""
    own = definition if record.resume.mode == "poll" else None
    description = own.description if own is not None else ""
    return Claims(record.run.title, description, record.run.claimed, model_text)


_EXTENSIONS_MS = tuple(minutes * 60_000 for minutes in (15, 60, 240, 1440))


class Why(NamedTuple):
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


def list_decisions(item: Item, *, minor: bool = False, schema: JsonObject | None = None) -> list[DecisionLine]:
    """Return the decisions on an item, and those that no longer count; keywords are as in `compare_args`."""
    lines = [
        DecisionLine(
            describe_decision(item, decision),
            decision.message or "",
            decision.at_ms,
            find_changes(item, decision, minor=minor, schema=schema),
            describe_shown(decision.shown) if decision.by.kind is ActorKind.HUMAN else "",
        )
        for decision in item.decisions
    ]
    voided = [DecisionLine(describe_voided(decision), "", decision.at_ms, [], "") for decision in item.voided]
    return sorted((*lines, *voided), key=lambda line: line.at_ms)


class Result(NamedTuple):
    """The result of an item's call; `latency` is text such as ` in 12 ms`."""

    success: bool
    output: JsonValue
    error: str
    latency: str
    at_ms: int


class Change(NamedTuple):
    """One leaf of the arguments: same, changed, added or removed.

    Changed long texts have `pieces`, and those of several lines `diff` instead. `title` is its name in the schema.
    """

    path: str
    before: str
    after: str
    state: str
    pieces: tuple[Piece, ...] = ()
    was: Leaf | None = None
    now: Leaf | None = None
    diff: tuple[Part, ...] = ()
    title: str = ""


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


def compare_args(
    requested: JsonObject, decided: JsonObject, *, minor: bool = False, schema: JsonObject | None = None
) -> list[Change]:
    """Return every leaf of both; with `minor`, amounts may be in cents and have no currency."""
    titles = Titles(schema or {})
    before, after = (
        {leaf.path: leaf for leaf in name_currencies(list_values(args), minor=minor)} if args else {}
        for args in (requested, decided)
    )
    rows = []
    for path in dict.fromkeys((*before, *after)):
        was, now = before.get(path), after.get(path)
        old, new = was.text if was else "", now.text if now else ""
        state = "added" if was is None else "removed" if now is None else "same" if old == new else "changed"
        diff = compare_lines(old, new) if state == "changed" else ()
        pieces = compare_texts(old, new) if state == "changed" and not diff else ()
        rows.append(Change(path, old, new, state, pieces, was, now, diff, titles.find(path)))
    return rows


class Difference(NamedTuple):
    """Who approved other arguments than the requested ones, and what differs."""

    who: str
    changes: "list[Change]"


def list_differences(item: Item, *, minor: bool = False, schema: JsonObject | None = None) -> list[Difference]:
    """Return what reviewers of an open item approved beside the requested arguments, each version once."""
    versions: dict[bytes, tuple[list[str], list[Change]]] = {}
    for decision in item.current if item.open else ():
        changes = find_changes(item, decision, minor=minor, schema=schema)
        if decision.action is DecisionAction.APPROVE and changes:
            versions.setdefault(canonical_json(args_of(item, decision)), ([], changes))[0].append(decision.by.id)
    return [Difference(join_words(people), changes) for people, changes in versions.values()]


def list_staged(item: Item, *, minor: bool = False, schema: JsonObject | None = None) -> list[Change]:
    """Return what earlier stages changed of the call that the agent requested."""
    rows = compare_args(item.original, item.tool.args, minor=minor, schema=schema) if item.original is not None else []
    return [row for row in rows if row.state != "same"]


def find_changes(
    item: Item, decision: Decision, *, minor: bool = False, schema: JsonObject | None = None
) -> list[Change]:
    """Return the leaves that one decision changes, so that other reviewers can compare."""
    if item.erasure is not None or (decision.args is None and decision.action is not DecisionAction.VALUE):
        return []
    if decision not in item.current:
        return []  # what an earlier stage has changed is shown as a whole
    rows = compare_args(item.tool.args, args_of(item, decision), minor=minor, schema=schema)
    return [row for row in rows if row.state != "same"]


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


SHOW = "show"  # the control of a form whose page shows the secrets; with the value `only` the form decides nothing
_NOTHING = Redacted({}, frozenset())
_SHOWN_MS = HOUR_MS
_PLACE = "web"


class ItemView(NamedTuple):
    """The record and item to show, and the secrets that are masked in other texts."""

    record: SuspensionRecord
    item: Item
    has_secrets: bool
    shown: bool
    secrets: Redacted

    def make_forms(self, definition: ToolDefinition | None) -> Forms:
        """Return the decision forms; nothing can be run while a value is masked."""
        forms = make_forms(self.item, definition, nested=True)
        if not self.has_secrets or self.shown:
            return forms
        return forms._replace(
            allowed=tuple(answer for answer in forms.allowed if answer is Answer.DENY), args=(), value=()
        )

    def mask_result(self, result: Result | None) -> Result | None:
        if result is None:
            return None
        scrub = self.secrets
        return result._replace(output=scrub.scrub_json(result.output), error=scrub.scrub(result.error))

    def mask_lines(self, lines: Sequence[Line]) -> list[Line]:
        return mask_lines(lines, self.secrets)


async def note_shown(notes: ChannelNotes, reviewer: str, record: SuspensionRecord, item: Item) -> None:
    """Log that a reviewer had the secrets of an item shown, and remember it for an hour."""
    log.info("secrets_shown", reviewer=reviewer, suspension=record.id, item=item.item_id)
    await notes.save(_PLACE, f"shown {reviewer} {item.digest}", "shown", _SHOWN_MS)


async def check_shown(notes: ChannelNotes, reviewer: str, view: ItemView, answer: str) -> None:
    """Raise `InvalidInput` for a decision that runs a call whose secrets the reviewer did not have shown."""
    runs = view.has_secrets and view.item.open and answer != Answer.DENY
    if runs and await notes.read(_PLACE, f"shown {reviewer} {view.item.digest}") is None:
        raise InvalidInput(_("Show the secret values before you approve. Nothing was changed."))


def look_at(record: SuspensionRecord, item: Item, definition: ToolDefinition | None, *, shown: bool) -> ItemView:
    """Return the item as its page shows it."""
    schema = definition.parameters if definition is not None else None
    own, all_secrets = find_secrets(item, schema), collect_secrets([record])
    secrets = Redacted({}, own.secrets | all_secrets.secrets)
    if not secrets.masked:
        return ItemView(record, item, False, False, _NOTHING)
    if shown:
        return ItemView(record, item, own.masked, own.masked, _NOTHING)
    return ItemView(mask_record(record), mask_item(item, schema), own.masked, False, secrets)


def mask_lines(lines: Sequence[Line], secrets: Redacted) -> list[Line]:
    """Return the lines of a timeline with secrets masked."""
    if not secrets.masked:
        return [*lines]
    return [_mask_line(line, secrets) for line in lines]


def _mask_line(line: Line, secrets: Redacted) -> Line:
    scrub = secrets.scrub
    return line._replace(
        text=scrub(line.text),
        note=scrub(line.note),
        data=scrub(line.data),
        link=scrub(line.link),
        lists=None if line.lists is None else secrets.scrub_object(line.lists),
    )
