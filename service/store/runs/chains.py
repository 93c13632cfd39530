"""Checks of whole trails: an event that was changed, and a call that started without a decision."""

from collections.abc import Sequence

from sayso.records.decisions import RUNNING
from sayso.records.events import EventType, TrailEntry, find_break

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
    allowed: set[object] = set()
    decided: set[tuple[str, object]] = set()
    suspension_id, calls = "", dict[object, object]()
    for entry in entries:
        data = entry.data
        if entry.type == EventType.POLICY_DECISION and data.get("action") == "allow":
            allowed.add(data.get("call_id"))
        elif entry.type == EventType.RUN_PAUSED:
            suspension_id, calls = _read_suspended(data)
        elif entry.type in _DECIDING and data.get("verdict") in RUNNING:
            place = str(data.get("suspension_id", suspension_id)), data.get("item_id")
            decided.add(place)
            allowed.add(calls.get(place[1], data.get("call_id")))
        elif entry.type == EventType.RESULT_REPORTED:
            decided.add((suspension_id, data.get("item_id")))
        elif entry.type == EventType.PERMIT_REDEEMED and data.get("item_id") is not None:
            place = str(data.get("suspension_id", suspension_id)), data.get("item_id")
            if place not in decided and data.get("call_id", calls.get(place[1])) not in allowed:
                return f"Event {entry.seq} starts a call that nobody decided: the trail has no decision on it."
    return ""


def _read_suspended(data: dict[str, object]) -> tuple[str, dict[object, object]]:
    """Return the suspension of this event, and the calls of its items."""
    payload = data.get("payload")
    if not isinstance(payload, dict):
        return "", {}
    items = payload.get("items")
    rows = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    return str(payload.get("suspension_id", "")), {one.get("item_id"): one.get("call_id") for one in rows}
