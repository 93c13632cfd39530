"""The transition that voids decisions of deactivated people, so that they complete no quorum."""

from collections.abc import Collection

from sayso.records.decisions import ActorKind, Decision, VoidedDecision
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
        lost = [
            decision
            for decision in item.decisions
            if decision.by.kind is ActorKind.HUMAN and decision.by.id in inactive
        ]
        if not item.open or not lost:
            continue
        record = put_item(record, _void(item, lost, now_ms), (), now_ms).record
        events += [
            Event(
                EventType.DECISION_VOIDED,
                {
                    "suspension_id": record.id,
                    "item_id": item.item_id,
                    "decision_id": decision.id,
                    "action": decision.action,
                    "by": decision.by.model_dump(mode="json"),
                },
            )
            for decision in lost
        ]
    return Change(record, tuple(events))


def _void(item: Item, lost: Collection[Decision], now_ms: int) -> Item:
    voided = tuple(
        VoidedDecision(
            id=decision.id, action=decision.action, by=decision.by, at_ms=decision.at_ms, voided_at_ms=now_ms
        )
        for decision in lost
    )
    kept = tuple(decision for decision in item.decisions if decision not in lost)
    return item.model_copy(update={"decisions": kept, "voided": (*item.voided, *voided)})
