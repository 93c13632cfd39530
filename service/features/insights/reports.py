"""Reports on decisions that no person made."""

from dataclasses import dataclass

from sayso.core.records.decisions import ActorKind, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from service.core.store.suspensions.reading import id_of
from service.core.wiring import Wiring

_AT_ONCE = 100
_MOST_SEARCHED = 2_000


@dataclass(frozen=True)
class HeadlessItem:
    """An item that a fallback decided without notifying anybody."""

    suspension_id: str
    item_id: str
    run_id: str
    agent: str
    owner: str
    tool: str
    rule_id: str | None
    verdict: Verdict
    at_ms: int


@dataclass(frozen=True)
class Report:
    """The items of one page, and where the next page begins; None at the end."""

    items: tuple[HeadlessItem, ...]
    next_skip: int | None


def is_headless(record: SuspensionRecord, item: Item) -> bool:
    """Return whether the item's fallback decided it at once, so that nobody could."""
    outcome = item.outcome
    by_fallback = outcome is not None and outcome.by.kind is ActorKind.TIMEOUT
    return by_fallback and item.terms.deadline_at_ms <= record.created_at_ms


async def list_headless(wiring: Wiring, from_ms: int, to_ms: int, skip: int, limit: int) -> Report:
    """Return the items that were decided headless from `from_ms` up to `to_ms`, the newest first.

    `skip` counts suspensions. A page may have fewer items than `limit`, or some more of its last suspension.
    """
    items: list[HeadlessItem] = []
    position = skip
    while position < skip + _MOST_SEARCHED:
        ids = await wiring.runs.decided(position, _AT_ONCE)
        by_id = {id_of(record): record for record in await wiring.desk.suspensions.read_page(ids)}
        for suspension_id in ids:
            position += 1
            record = by_id.get(suspension_id)
            if isinstance(record, SuspensionRecord):
                items += [item for item in _list_items(record) if from_ms <= item.at_ms < to_ms]
            if len(items) >= limit:
                return Report(tuple(items), position)
        if len(ids) < _AT_ONCE:
            return Report(tuple(items), None)
    return Report(tuple(items), position)


def _list_items(record: SuspensionRecord) -> list[HeadlessItem]:
    return [
        HeadlessItem(
            suspension_id=record.id,
            item_id=item.item_id,
            run_id=record.run.id,
            agent=record.run.agent,
            owner=record.run.owner,
            tool=item.tool.name,
            rule_id=item.terms.rule_id,
            verdict=item.outcome.verdict,
            at_ms=item.outcome.at_ms,
        )
        for item in record.items
        if item.outcome is not None and is_headless(record, item)
    ]
