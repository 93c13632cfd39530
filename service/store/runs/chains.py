"""Checks of whole trails: an event that was changed, and a call that started without a decision."""

from collections.abc import Sequence

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import RUNNING
from sayso.core.records.events import EventType, TrailEntry, find_break

_DECIDING = (EventType.DECISION_RECORDED, EventType.TIMED_OUT)


def find_chain_fault(entries: Sequence[TrailEntry]) -> str:
    """Return what is wrong inside a whole trail: a changed event, or a call that nobody decided; or nothing."""
    broken = find_break([*entries])
    return name_break(broken) if broken is not None else describe_undecided(entries)


def name_break(seq: int) -> str:
    """Return the sentence about the first event that does not fit the chain."""
    return (
        f"Event {seq} does not follow from the event before it: the trail was altered in the middle. "
        "Do not trust it or any later event."
    )


def describe_undecided(entries: Sequence[TrailEntry]) -> str:
    """Return which call started although the trail has no decision that lets it run; empty if there is none."""
    allowed: set[str] = set()
    decided: set[tuple[str, str]] = set()
    suspension_id, calls = "", dict[str, str]()
    for entry in entries:
        data = entry.data
        place = _read(data, "suspension_id", suspension_id), _read(data, "item_id")
        call_id = _read(data, "call_id", calls.get(place[1], ""))
        allowed.discard("")  # a call without an id needs a decision on its item
        if entry.type == EventType.POLICY_DECISION and data.get("action") == "allow":
            allowed.add(call_id)
        elif entry.type == EventType.RUN_PAUSED:
            suspension_id, calls = _read_suspended(data)
        elif entry.type in _DECIDING and _read(data, "verdict") in RUNNING:
            decided.add(place)
            allowed.add(calls.get(place[1], call_id))
        elif entry.type == EventType.RESULT_REPORTED:
            decided.add((suspension_id, place[1]))
        elif entry.type == EventType.PERMIT_REDEEMED and place[1] and place not in decided and call_id not in allowed:
            return f"Event {entry.seq} starts a call that nobody decided: the trail has no decision on it."
    return ""


def _read_suspended(data: JsonObject) -> tuple[str, dict[str, str]]:
    """Return the suspension of this event, and the calls of its items."""
    payload = data.get("payload")
    if not isinstance(payload, dict):
        return "", {}
    items = payload.get("items")
    rows = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return _read(payload, "suspension_id"), {_read(row, "item_id"): _read(row, "call_id") for row in rows}


def _read(data: JsonObject, name: str, default: str = "") -> str:
    """Return a text of an event, which may have been forged; the default without one."""
    value = data.get(name)
    return value if isinstance(value, str) else default
