"""When items that wait will be decided and by whom: from how long such items waited, in the hours of those asked."""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sayso.core.calendar import Span
from sayso.core.clock import DAY_MS
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.wire.people import Preferences
from service.core.auth.duty import next_open_ms
from service.core.wiring import Wiring
from service.features.forecast.staffing import find_passed, list_staffed, measure_staffed
from service.features.forecast.waits import ALL_TOOLS, KEPT_MS, Wait, Waits
from service.features.people.who import MOST_PEOPLE, find_preferences, list_present

FEWEST = 10
"""Fewer waits tell nothing. Of these, at least half as many must have lasted longer than the item has waited."""

AHEAD_MS = 14 * DAY_MS
_HALF, _MOST = 0.5, 0.9
_NAMED = 3


class Likely(NamedTuple):
    """A person who may decide, their share of the decisions of such items, and when they are at work again."""

    name: str
    share: float
    at_work_ms: int


class Forecast(NamedTuple):
    """When an item will be decided: by `half_by_ms` in one case of two, by `most_by_ms` in nine of ten.

    Both are None where nothing is known, or nobody is at work within two weeks. It rests on `measured` items, of this
    tool or of all. `overdue` items have waited longer than nearly all of them.
    """

    item_id: str
    tool: str
    deadline_at_ms: int
    measured: int = 0
    of_tool: bool = True
    overdue: bool = False
    half_by_ms: int | None = None
    most_by_ms: int | None = None
    people: tuple[Likely, ...] = ()


async def forecast_suspension(wiring: Wiring, record: SuspensionRecord, now_ms: int) -> list[Forecast]:
    """Return the forecast of each open item."""
    return [await _forecast_item(wiring, record, item, now_ms) for item in record.items if item.open]


async def _forecast_item(wiring: Wiring, record: SuspensionRecord, item: Item, now_ms: int) -> Forecast:
    unknown = Forecast(item.item_id, item.tool.name, item.terms.deadline_at_ms)
    waits, of_tool = await wiring.part(Waits).read(item.tool.name, now_ms - KEPT_MS), True
    if len(waits) < FEWEST:
        waits, of_tool = await wiring.part(Waits).read(ALL_TOOLS, now_ms - KEPT_MS), False
    people = await _find_people(wiring, record, item, now_ms)
    if len(waits) < FEWEST:
        return unknown
    known = unknown._replace(measured=len(waits), of_tool=of_tool, people=_list_likely(waits, people, now_ms))
    return await asyncio.to_thread(estimate, known, waits, list(people.values()), record.created_at_ms, now_ms)


async def _find_people(wiring: Wiring, record: SuspensionRecord, item: Item, now_ms: int) -> Mapping[str, Preferences]:
    """Return who may decide and is present, with how each is notified."""
    excluded, present = record.run.list_excluded(item.terms), dict[str, None]()
    reviewers = item.deciders if item.forwarded is None else item.asked_reviewers
    for reviewer in reviewers or ("",):
        present |= dict.fromkeys(await list_present(wiring, reviewer, now_ms, record.run.owner))
    active = {reviewer.name for reviewer in await wiring.reviewers.list_all() if reviewer.active}
    names = [name for name in present if name in active and name not in excluded][:MOST_PEOPLE]
    return {name: await find_preferences(wiring, name, reviewers) for name in names}


def estimate(
    known: Forecast, waits: Sequence[Wait], people: Sequence[Preferences], asked_ms: int, now_ms: int
) -> Forecast:
    """Return the forecast with its moments. Waits and the time ahead count while one of the people is at work."""
    staffed = list_staffed(people, Span(min(asked_ms, *(wait.asked_ms for wait in waits)), now_ms + AHEAD_MS))
    waited_ms = measure_staffed(staffed, asked_ms, now_ms)
    spans = sorted(measure_staffed(staffed, wait.asked_ms, wait.decided_ms) for wait in waits)
    longer = spans[bisect_right(spans, waited_ms) :]
    if len(longer) < FEWEST // 2:
        return known._replace(overdue=bool(staffed))
    half_ms, most_ms = (
        find_passed(staffed, now_ms, longer[min(int(share * len(longer)), len(longer) - 1)] - waited_ms)
        for share in (_HALF, _MOST)
    )
    return known._replace(half_by_ms=half_ms, most_by_ms=most_ms)


def _list_likely(waits: Sequence[Wait], people: Mapping[str, Preferences], now_ms: int) -> tuple[Likely, ...]:
    counts = Counter(wait.by for wait in waits if wait.by in people)
    return tuple(
        Likely(name, count / counts.total(), next_open_ms(people[name], now_ms))
        for name, count in counts.most_common(_NAMED)
    )
