"""What remains after an erasure: of a trail event who did what, when and by which rule; of a record the same."""

from collections.abc import Mapping
from typing import Any

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import Erasure
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.items import Item, Prompt
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import DECIDING

_WHO = ("by", "who", "agent", "owner", "worker", "holder", "person", "delegate", "channel", "reviewers", "subagent")
_WHICH = (
    *("suspension_id", "item_id", "call_id", "tool_call_id", "index", "tool_name", "tool_names", "step", "attempt"),
    *("decision_id", "inquiry_id", "grant_id", "id", "suspends", "digest", "drawn", "seen", "closed_with_it"),
    *("event_type", "kind", "drill", "calls_in_flight"),
)
_DECIDED = (
    *("action", "policy_id", "rule_id", "matched_rules", "rule_version", "absolute", "near_miss", "resembles"),
    *("would_allow", *DECIDING, "second_look", "verdict", "verdicts"),
    *("approved", "edited", "caught", "agrees", "ran", "success", "started", "look_ms", "effect", "approvals"),
)
_COUNTED = (
    *("at_ms", "until_ms", "deadline_at_ms", "again_at_ms", "by_ms", "latency_ms", "tool_call_count", "failure_count"),
    *("progress", "usage", "finish_reason"),
)
_KEPT = frozenset((*_WHO, *_WHICH, *_DECIDED, *_COUNTED))
"""The fields of an event that no erasure removes. A field that is not named here is contents."""

_NESTED = frozenset(("payload", "items", "unanswered", "shadow", "shown", "grant", "mandate", "candidate", "judged"))
"""The fields of which the same is kept inside."""


_NOTHING_SAID = {"args": None, "value": None, "message": None, "offer": None}


def make_tombstone(entry: TrailEntry, erased_by: int) -> TrailEntry:
    """Return the event without contents, or the event itself if it has none or is a tombstone."""
    if entry.erased_by is not None or entry.type == EventType.CONTENTS_ERASED:
        return entry
    kept = _strip(entry.data)
    return entry if kept == entry.data else entry.model_copy(update={"data": kept, "erased_by": erased_by})


def _strip(data: Mapping[str, Any]) -> JsonObject:
    kept = {name: value for name, value in data.items() if name in _KEPT}
    for name in _NESTED & data.keys():
        value = data[name]
        if isinstance(value, Mapping):
            kept[name] = _strip(value)
        elif isinstance(value, list):
            kept[name] = [_strip(part) for part in value if isinstance(part, Mapping)]
    return kept


def erase_record(record: SuspensionRecord, erasure: Erasure) -> SuspensionRecord:
    """Return the next version of the record without the contents of the run and its items."""
    update = {
        "version": record.version + 1,
        "run": record.run.model_copy(update={"title": "", "tags": (), "facts": {}, "claimed": {}}),
        "items": tuple(_erase_item(item, erasure) for item in record.items),
        "state": None,
        "journal": (),
        "typed": (),
        "receipt": record.receipt.model_copy(update={"error": None}),
        "end": _empty(record.end, result=None, error=None),
        "erasure": erasure,
    }
    return record.model_copy(update=update)


def _erase_item(item: Item, erasure: Erasure) -> Item:
    """Return the item without its arguments and every text about them; its digest names what was decided."""
    if item.erasure is not None:
        return item
    decisions = tuple(
        decision.model_copy(update={**_NOTHING_SAID, "number": None, "shown": _empty(decision.shown, paths=())})
        for decision in item.decisions
    )
    update: dict[str, object] = {
        "tool": item.tool.model_copy(update={"args": {}}),
        "prompt": Prompt(),
        "choices": None,
        "response_schema": None,
        "computed": None,
        "remembered": (),
        "charges": (),
        "assessment": None,
        "learning": None,
        "doubt": _empty(item.doubt, charges=()),
        "secret_number": "",
        "drill": _empty(item.drill, signs=()),
        "mandate": _empty(item.mandate, tools=()),
        "decisions": decisions,
        "outcome": _empty(item.outcome, **_NOTHING_SAID),
        "inquiries": tuple(
            inquiry.model_copy(update={"text": "", "answer": None if inquiry.answer is None else ""})
            for inquiry in item.inquiries
        ),
        "erasure": erasure,
    }
    if (permit := item.permit) is not None:
        update["permit"] = permit.model_copy(update={"report": _empty(permit.report, output=None, error=None)})
    return item.model_copy(update=update)


def _empty(record: Immutable | None, **fields: object) -> Immutable | None:
    return record.model_copy(update=fields) if record is not None else None
