"""The acts of a call that become spans: asked, decided, redeemed, executed, delivered.

An act names ids, the tool, the rule and the verdict. It has no argument, reason, address or name of a person.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from sayso.core.records.events import EventType
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from service.core.store.connection.commits import Update

_SAMPLED = 1


class Act(NamedTuple):
    """One span. The same act has the same `span_id`, whichever process describes it, and however often."""

    name: str
    traceparent: str
    span_id: int
    at_ms: int
    took_ms: float
    facts: dict[str, str | int | bool]
    failed: bool = False


def list_acts(update: Update) -> Iterator[Act]:
    """Yield the acts of a saved change; none of drills, and none of runs whose agent is in no sampled trace."""
    for before, after in update.pairs:
        if not is_traced(after):
            continue
        priors = {item.item_id: item for item in before.items} if before is not None else {}
        for item in after.items:
            prior = priors.get(item.item_id)
            if item is not prior:
                yield from _list_item_acts(after, prior, item)
    if is_traced(update.after):
        items = {item.item_id: item for item in update.after.items}
        cards = (event.data for event in update.change.events if event.type is EventType.CARD_SENT)
        for place, data in enumerate(cards):
            facts: dict[str, str | int | bool] = {"sayso.channel": data["channel"]}
            key = f"{update.after.version} {place}"
            about = items.get(data["item_id"])
            yield _build(update.after, about, "delivered", update.at_ms, facts=facts, key=key)


def describe_delivery(record: SuspensionRecord, message_id: str, at_ms: int, took_ms: float) -> Act | None:
    """Return the act of an accepted message; None where its run is in no sampled trace."""
    if not is_traced(record):
        return None
    facts: dict[str, str | int | bool] = {"sayso.message.id": message_id}
    return _build(record, None, "delivered", at_ms, took_ms, facts, message_id)


def is_traced(record: SuspensionRecord) -> bool:
    """Return whether the record's agent is in a sampled trace, and the record is no drill."""
    traceparent = record.run.traceparent
    return bool(traceparent) and bool(int(traceparent[-2:], 16) & _SAMPLED) and not record.is_drill


def _list_item_acts(record: SuspensionRecord, prior: Item | None, item: Item) -> Iterator[Act]:
    outcome, permit = item.outcome, item.permit
    if prior is None:
        yield _build(record, item, "asked", record.created_at_ms)
    if outcome is not None and (prior is None or prior.outcome is None):
        facts: dict[str, str | int | bool] = {"sayso.verdict": outcome.verdict.value, "sayso.by": outcome.by.kind.value}
        facts["sayso.waited_ms"] = max(0, outcome.at_ms - record.created_at_ms)
        yield _build(record, item, "decided", outcome.at_ms, facts=facts)
    if permit is None:
        return
    earlier = prior.permit if prior is not None else None
    if earlier is None or earlier.attempt != permit.attempt:
        facts = {"sayso.attempt": permit.attempt}
        yield _build(record, item, "redeemed", permit.redeemed_at_ms, facts=facts, key=str(permit.attempt))
    report = permit.report
    ended_at_ms = report.at_ms if report is not None else permit.ended_at_ms
    known = earlier is not None and (earlier.report is not None or earlier.ended_at_ms is not None)
    if ended_at_ms is not None and not known:
        took_ms = max(0, ended_at_ms - permit.redeemed_at_ms)
        success = report.success if report is not None else bool(permit.success)
        facts = {"sayso.success": success}
        yield _build(record, item, "executed", ended_at_ms, took_ms, facts)._replace(failed=not success)


def _build(
    record: SuspensionRecord,
    item: Item | None,
    name: str,
    at_ms: int,
    took_ms: float = 0.0,
    facts: dict[str, str | int | bool] | None = None,
    key: str = "",
) -> Act:
    item_id = item.item_id if item is not None else ""
    digest = sha256(f"{record.id} {item_id} {name} {key}".encode()).digest()
    about: dict[str, str | int | bool] = {"sayso.run.id": record.run.id, "sayso.suspension.id": record.id}
    if item is not None:
        about |= {"sayso.item.id": item.item_id, "gen_ai.tool.name": item.tool.name}
        about |= {"sayso.rule.id": item.terms.rule_id} if item.terms.rule_id else {}
    span_id = int.from_bytes(digest[:8], "big") or 1
    return Act(f"sayso.{name}", record.run.traceparent, span_id, at_ms, took_ms, about | (facts or {}))
