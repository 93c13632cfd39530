"""The transition that voids decisions of deactivated people, so that they complete no quorum."""

from collections.abc import Collection

from sayso.records.decisions import ActorKind, VoidedDecision
from sayso.records.events import Event, EventType
from sayso.records.items import Item
from sayso.records.suspensions import Change, SuspensionRecord
from sayso.transitions.closing import put_item
from sayso.transitions.table import check_step


def void_decisions(record: SuspensionRecord, inactive: Collection[str], now_ms: int) -> Change:
    """Remove the decisions of these people from the open items; a closed item keeps its decisions.

    Who is active again later may decide anew.
    """
    check_step(record, "void_decisions")
    events: list[Event] = []
    for item in record.items:
        lost = [one for one in item.decisions if one.by.kind is ActorKind.HUMAN and one.by.id in inactive]
        if not item.open or not lost:
            continue
        record = put_item(record, _void(item, [one.id for one in lost], now_ms), (), now_ms).record
        events += [
            Event(
                EventType.DECISION_VOIDED,
                {
                    "suspension_id": record.id,
                    "item_id": item.item_id,
                    "decision_id": one.id,
                    "action": one.action,
                    "by": one.by.model_dump(mode="json"),
                },
            )
            for one in lost
        ]
    return Change(record, tuple(events))


def _void(item: Item, lost: Collection[str], now_ms: int) -> Item:
    voided = tuple(
        VoidedDecision(id=one.id, action=one.action, by=one.by, at_ms=one.at_ms, voided_at_ms=now_ms)
        for one in item.decisions
        if one.id in lost
    )
    kept = tuple(one for one in item.decisions if one.id not in lost)
    return item.model_copy(update={"decisions": kept, "voided": (*item.voided, *voided)})
